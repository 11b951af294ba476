// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "launch/pmix/launcher.h"

#include "base/log.h"
#include "base/unique_fd.h"
#include "launch/fence_wait.h"
#include "launch/host.h"
#include "launch/internal/end_watch.h"
#include "launch/pmix/library.h"
#include "launch/same_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace diomp::launch::pmix {
namespace {

constexpr const char *remedy = "start the job again; PMIX_DEBUG=5 shows what the library does";
constexpr std::string_view key_prefix = "diomp.";
/// Time limit for a value that the server of another node sends.
constexpr int get_timeout_s = 30;

/// Written by PMIx's thread when the job fails; the callback has no parameter for user data.
std::atomic<int> g_watch{-1};

void on_end_of_job(std::size_t /*handler*/, pmix_status_t /*status*/,
                   const pmix_proc_t * /*source*/, pmix_info_t * /*info*/, std::size_t /*ninfo*/,
                   pmix_info_t * /*results*/, std::size_t /*nresults*/,
                   pmix_event_notification_cbfunc_fn_t done, void *done_data) {
    if (int const fd = g_watch.load(); fd >= 0) {
        eventfd_write(fd, 1);
    }
    if (done != nullptr) {
        done(PMIX_EVENT_ACTION_COMPLETE, nullptr, 0, nullptr, nullptr, done_data);
    }
}

void ignore_registration(pmix_status_t /*status*/, std::size_t /*handler*/, void * /*data*/) {}

/// A fence that PMIx's thread ends. Shared with it, since the waiting rank may give up before.
struct running_fence {
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<pmix_status_t> outcome;

    static void on_end(pmix_status_t outcome, void *data) {
        std::unique_ptr<std::shared_ptr<running_fence>> const self(
            static_cast<std::shared_ptr<running_fence> *>(data));
        std::lock_guard const guard((*self)->mutex);
        (*self)->outcome = outcome;
        (*self)->changed.notify_all();
    }

    /// Waits for the end. OMPX_ERR_TIMEOUT: other ranks are not in the fence.
    result<pmix_status_t> wait(const fence_limits &limits) {
        fence_wait waiting(limits);
        std::unique_lock lock(mutex);
        while (!outcome) {
            if (int const due_ms = waiting.due_ms(); due_ms < 0) {
                changed.wait(lock);
            } else if (changed.wait_for(lock, std::chrono::milliseconds(due_ms)) ==
                       std::cv_status::timeout) {
                DIOMP_TRY(waiting.check());
            }
        }
        return *outcome;
    }
};

void set_flag(pmix_info_t &info, const char *key, bool value) {
    std::memset(&info, 0, sizeof info);
    std::strncpy(info.key, key, sizeof info.key - 1);
    info.value.type = PMIX_BOOL;
    info.value.data.flag = value;
}

void set_number(pmix_info_t &info, const char *key, int value) {
    std::memset(&info, 0, sizeof info);
    std::strncpy(info.key, key, sizeof info.key - 1);
    info.value.type = PMIX_INT;
    info.value.data.integer = value;
}

/// Result of PMIx_Get, of a simple type, whose memory is allocated by malloc in all versions.
class fetched_value {
public:
    explicit fetched_value(pmix_value_t *value) : value_(value) {}
    fetched_value(const fetched_value &) = delete;
    fetched_value &operator=(const fetched_value &) = delete;
    ~fetched_value() {
        if (value_ != nullptr) {
            if (value_->type == PMIX_STRING) {
                std::free(value_->data.string);
            }
            std::free(value_);
        }
    }
    [[nodiscard]] const pmix_value_t *operator->() const { return value_; }

private:
    pmix_value_t *value_;
};

class pmix_launcher final : public launcher {
public:
    pmix_launcher(const library &functions, const fence_limits &limits, int collect_limit,
                  bool under_orte)
        : pmix_(functions), limits_(limits), collect_limit_(collect_limit),
          under_orte_(under_orte) {}
    pmix_launcher(const pmix_launcher &) = delete;
    pmix_launcher &operator=(const pmix_launcher &) = delete;
    ~pmix_launcher() override { g_watch.store(-1); }

    [[nodiscard]] const job_info &info() const override { return info_; }
    [[nodiscard]] int watch_fd() const override { return watch_.get(); }
    [[nodiscard]] const char *name() const override { return "PMIx"; }

    status start(const std::string &expected_namespace, const char *launch_address) {
        if (pmix_status_t const rc = pmix_.init(&self_, nullptr, 0); rc != PMIX_SUCCESS) {
            return failure("cannot reach the launcher's PMIx server", rc);
        }
        // Newer libraries create a job of their own if the launcher's server is unreachable.
        if (expected_namespace != static_cast<const char *>(self_.nspace)) {
            return error(
                OMPX_ERR_PEER,
                fmt::format("PMIX_NAMESPACE={} names a job whose launcher cannot be reached",
                            expected_namespace),
                "start the program with mpirun, prterun or srun --mpi=pmix, or unset "
                "PMIX_RANK and PMIX_NAMESPACE for a world of one rank");
        }
        info_.rank = world_rank(static_cast<int>(self_.rank));
        info_.host = host_name();
        info_.job_id = to_job_id(expected_namespace);
        if (launch_address != nullptr) {
            info_.job_id += fmt::format("-{:08x}", hash(launch_address));
        }
        auto size = job_number(PMIX_JOB_SIZE);
        DIOMP_TRY(size);
        info_.size = size.value();
        watch_launcher();
        if (!collects()) {
            // A server replies for ranks that have published something, and waits for other ranks.
            DIOMP_TRY(store(PMIX_GLOBAL, "launch.here", "1"));
        }
        return find_local_ranks();
    }

    status put(std::string_view key, std::string_view value) override {
        return store(PMIX_GLOBAL, key, value);
    }

    result<std::string> get(world_rank owner, std::string_view key) override {
        std::array<pmix_info_t, 1> directives{};
        // After a fence these values are local or do not exist; without the flag, the server waits
        // for them.
        if (collects() || std::ranges::binary_search(served_locally_, owner)) {
            set_flag(directives[0], PMIX_IMMEDIATE, true);
        } else {
            set_number(directives[0], PMIX_TIMEOUT, get_timeout_s);
        }
        return fetch(owner, key, directives.data(), directives.size());
    }

    status fence() override {
        DIOMP_TRY(commit());
        return run_fence(nullptr, 0, collects());
    }

    status finalize() override {
        end_watch_.stop();
        if (pmix_status_t const rc = pmix_.finalize(nullptr, 0); rc != PMIX_SUCCESS) {
            return failure("PMIx_Finalize has failed", rc);
        }
        return {};
    }

    void abort(int code, std::string_view message) noexcept override {
        if (under_orte_) {
            std::_Exit(code); // see watch_launcher
        }
        constexpr std::size_t max_message_bytes = 1024;
        std::array<char, max_message_bytes> text{};
        std::memcpy(text.data(), message.data(), std::min(message.size(), max_message_bytes - 1));
        pmix_.abort(code, text.data(), nullptr, 0); // no list: the whole job
    }

private:
    [[nodiscard]] bool collects() const { return info_.size <= collect_limit_; }

    [[nodiscard]] error failure(std::string_view what, pmix_status_t rc) const {
        return {OMPX_ERR_PEER, fmt::format("{}: {}", what, pmix_.error_string(rc)), remedy};
    }

    static std::uint32_t hash(std::string_view text) { // FNV-1a
        std::uint32_t value = 2166136261U;
        for (char const c : text) {
            value = (value ^ static_cast<unsigned char>(c)) * 16777619U;
        }
        return value;
    }

    [[nodiscard]] pmix_proc_t process(pmix_rank_t rank) const {
        pmix_proc_t named = self_;
        named.rank = rank;
        return named;
    }

    result<int> job_number(const char *key) {
        pmix_proc_t const job = process(PMIX_RANK_WILDCARD);
        pmix_value_t *raw = nullptr;
        if (pmix_status_t const rc = pmix_.get(&job, key, nullptr, 0, &raw); rc != PMIX_SUCCESS) {
            return failure(fmt::format("the launcher does not provide {}", key), rc);
        }
        fetched_value const value(raw);
        if (value->type != PMIX_UINT32) {
            return error(OMPX_ERR_SYSTEM, fmt::format("the launcher's {} is not a number", key));
        }
        return static_cast<int>(value->data.uint32);
    }

    status store(pmix_scope_t scope, std::string_view key, std::string_view value) {
        std::string const full_key = std::string(key_prefix) + std::string(key);
        std::string text(value); // PMIx copies it
        pmix_value_t entry{};
        entry.type = PMIX_STRING;
        entry.data.string = text.data();
        if (pmix_status_t const rc = pmix_.put(scope, full_key.c_str(), &entry);
            rc != PMIX_SUCCESS) {
            return failure(fmt::format("cannot publish '{}'", key), rc);
        }
        uncommitted_ = true;
        return {};
    }

    result<std::string> fetch(world_rank owner, std::string_view key, const pmix_info_t *directives,
                              std::size_t count) {
        std::string const full_key = std::string(key_prefix) + std::string(key);
        pmix_proc_t const from = process(static_cast<pmix_rank_t>(owner.value()));
        pmix_value_t *raw = nullptr;
        if (pmix_status_t const rc = pmix_.get(&from, full_key.c_str(), directives, count, &raw);
            rc != PMIX_SUCCESS) {
            return error(OMPX_ERR_STATE, fmt::format("rank {} has published no '{}' ({})",
                                                     owner.value(), key, pmix_.error_string(rc)));
        }
        fetched_value const value(raw);
        if (value->type != PMIX_STRING || value->data.string == nullptr) {
            return error(OMPX_ERR_SYSTEM, fmt::format("the value '{}' of rank {} is not a string",
                                                      key, owner.value()));
        }
        return std::string(value->data.string);
    }

    status commit() {
        if (uncommitted_) {
            if (pmix_status_t const rc = pmix_.commit(); rc != PMIX_SUCCESS) {
                return failure("cannot pass values to the launcher", rc);
            }
            uncommitted_ = false;
        }
        return {};
    }

    /// Fence over `processes`, or over the whole job if `count` is 0.
    status run_fence(const pmix_proc_t *processes, std::size_t count, bool collect) {
        std::array<pmix_info_t, 1> directives{};
        set_flag(directives[0], PMIX_COLLECT_DATA, collect);
        auto const running = std::make_shared<running_fence>();
        auto for_thread = std::make_unique<std::shared_ptr<running_fence>>(running);
        pmix_status_t rc = pmix_.fence_nb(processes, count, directives.data(), directives.size(),
                                          running_fence::on_end, for_thread.get());
        if (rc == PMIX_SUCCESS) {
            [[maybe_unused]] auto *const owned_by_thread = for_thread.release();
            auto outcome = running->wait(limits_);
            DIOMP_TRY(outcome);
            rc = outcome.value();
        }
        if (rc != PMIX_SUCCESS && rc != PMIX_OPERATION_SUCCEEDED) {
            return failure("the fence over the ranks of the job has failed", rc);
        }
        return {};
    }

    /// Detects the end of the launcher, since launchers kill the ranks of a failed job, but not
    /// when they fail themselves.
    ///
    /// For Open MPI 4 neither event handlers nor PMIx_Abort are used: with PMIx 4.2.2 its mpirun
    /// deadlocks or crashes in PMIx_server_finalize in up to half of the jobs that fail after
    /// either. There, a rank that exits without finalize ends the job as well, and the launcher is
    /// the parent, whose end a pidfd reports (that of a shell between them, if there is one).
    void watch_launcher() {
        if (under_orte_) {
            watch_ = unique_fd(static_cast<int>(syscall(SYS_pidfd_open, getppid(), 0)));
            end_watch_.start(watch_.get(), info_.rank);
            return;
        }
        watch_ = unique_fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
        g_watch.store(watch_.get());
        end_watch_.start(watch_.get(), info_.rank);
        // Static: the library reads the list after the call has returned.
        static std::array<pmix_status_t, 1> codes{PMIX_ERR_LOST_CONNECTION};
        // Errors are ignored: jobs can start without the event.
        pmix_.register_event_handler(codes.data(), codes.size(), nullptr, 0, on_end_of_job,
                                     ignore_registration, nullptr);
    }

    /// Determines the ranks of this node according to the launcher, restricted to those that can
    /// share memory: two containers on one machine cannot.
    status find_local_ranks() {
        auto named = launcher_peers();
        served_locally_ = named;
        if (named.size() > 1) {
            std::string const own = node_identity();
            DIOMP_TRY(store(PMIX_LOCAL, node_key, own));
            DIOMP_TRY(commit());
            std::vector<pmix_proc_t> processes;
            processes.reserve(named.size());
            for (world_rank const rank : named) {
                processes.push_back(process(static_cast<pmix_rank_t>(rank.value())));
            }
            DIOMP_TRY(run_fence(processes.data(), processes.size(), true));
            std::array<pmix_info_t, 1> directives{};
            set_flag(directives[0], PMIX_IMMEDIATE, true);
            std::vector<world_rank> node_ranks;
            for (world_rank const rank : named) {
                if (rank == info_.rank) {
                    node_ranks.push_back(rank);
                    continue;
                }
                auto theirs = fetch(rank, node_key, directives.data(), directives.size());
                DIOMP_TRY(theirs);
                if (theirs.value() == own) {
                    node_ranks.push_back(rank);
                }
            }
            named = std::move(node_ranks);
        }
        set_local_ranks(info_, std::move(named));
        return {};
    }

    /// Ranks of this node, ascending; only the own rank if the launcher does not provide them.
    std::vector<world_rank> launcher_peers() {
        std::vector<world_rank> ranks;
        pmix_proc_t const job = process(PMIX_RANK_WILDCARD);
        pmix_value_t *raw = nullptr;
        if (pmix_.get(&job, PMIX_LOCAL_PEERS, nullptr, 0, &raw) == PMIX_SUCCESS) {
            fetched_value const value(raw);
            std::string_view const list =
                value->type == PMIX_STRING && value->data.string != nullptr ? value->data.string
                                                                            : "";
            const char *at = list.data();
            const char *const end = at + list.size();
            while (at < end) {
                int rank = 0;
                auto const parsed = std::from_chars(at, end, rank);
                if (parsed.ec == std::errc() && rank >= 0 && rank < info_.size) {
                    ranks.emplace_back(rank);
                }
                at = std::find(parsed.ptr, end, ',');
                at += at < end ? 1 : 0;
            }
        } else {
            log(log_level::warn, "the PMIx launcher does not provide the ranks of a node; ranks "
                                 "will not share memory");
        }
        ranks.push_back(info_.rank);
        std::ranges::sort(ranks);
        auto const repeated = std::ranges::unique(ranks);
        ranks.erase(repeated.begin(), repeated.end());
        return ranks;
    }

    library pmix_;
    fence_limits limits_;
    int collect_limit_;
    bool under_orte_; ///< mpirun of Open MPI 4 and before
    unique_fd watch_;
    end_watch end_watch_; ///< of watch_
    pmix_proc_t self_{};
    job_info info_;
    std::vector<world_rank> served_locally_; ///< by the same PMIx server, ascending
    bool uncommitted_ = false;
};

} // namespace

bool present(const environment &lookup) {
    return lookup("PMIX_RANK") != nullptr && lookup("PMIX_NAMESPACE") != nullptr;
}

result<std::unique_ptr<launcher>> join(const environment &lookup) {
    auto functions = load_library();
    if (!functions) {
        return functions.take_failure();
    }
    const char *const limit = lookup(collect_limit_variable);
    const char *const mpirun_address = lookup("OMPI_MCA_orte_hnp_uri");
    auto joined = std::make_unique<pmix_launcher>(
        functions.value(), fence_limits::from(lookup),
        limit != nullptr ? std::atoi(limit) : std::numeric_limits<int>::max(),
        mpirun_address != nullptr);
    // Namespaces of Open MPI 4 have 16 bits; the address of its mpirun distinguishes two such jobs.
    DIOMP_TRY(joined->start(lookup("PMIX_NAMESPACE"), mpirun_address));
    return std::unique_ptr<launcher>(std::move(joined));
}

} // namespace diomp::launch::pmix
