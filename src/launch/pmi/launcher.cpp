// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "launch/pmi/launcher.h"

#include "launch/host.h"
#include "launch/internal/end_watch.h"
#include "launch/pmi/server.h"
#include "launch/same_node.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <set>

namespace diomp::launch::pmi {
namespace {

class pmi_launcher final : public launcher {
public:
    pmi_launcher(pmi_connection wire, int version)
        : wire_(std::move(wire)), server_(version == 2 ? make_pmi2(wire_) : make_pmi1(wire_)),
          name_(version == 2 ? "PMI-2" : "PMI-1") {}

    /// A launcher kills a rank that closes its socket before finalize. The rank may have to say why
    /// it fails.
    ~pmi_launcher() override {
        end_watch_.stop();
        if (!is_finalized_) {
            wire_.leave_open();
        }
    }
    pmi_launcher(const pmi_launcher &) = delete;
    pmi_launcher &operator=(const pmi_launcher &) = delete;

    [[nodiscard]] const job_info &info() const override { return info_; }
    [[nodiscard]] int watch_fd() const override { return wire_.watch_fd(); }
    [[nodiscard]] const char *name() const override { return name_; }

    /// Joins the job and determines the ranks of this node.
    status start(int rank, int size, const std::string &launcher_job) {
        info_.rank = world_rank(rank);
        info_.size = size;
        info_.host = host_name();
        DIOMP_TRY(server_->start(rank, launcher_job));
        end_watch_.start(wire_.watch_fd(), info_.rank);
        std::string const own = node_identity();
        DIOMP_TRY(put(node_key, own));
        if (rank == 0) {
            DIOMP_TRY(put(job_key, make_job_id(info_.host)));
        }
        DIOMP_TRY(fence());
        auto job = get(world_rank(0), job_key);
        DIOMP_TRY(job);
        info_.job_id = job.take();
        auto candidates = launcher_peers();
        DIOMP_TRY(candidates);
        std::vector<world_rank> node_ranks;
        for (world_rank const peer : candidates.value()) {
            if (peer != info_.rank) {
                auto theirs = get(peer, node_key);
                DIOMP_TRY(theirs);
                if (theirs.value() != own) {
                    continue;
                }
            }
            node_ranks.push_back(peer);
        }
        set_local_ranks(info_, std::move(node_ranks));
        return {};
    }

    status put(std::string_view key, std::string_view value) override {
        std::string const full_key = key_of(info_.rank, key);
        if (!published_.insert(full_key).second) {
            return error(OMPX_ERR_STATE, fmt::format("'{}' has been published already", key));
        }
        int index = 0;
        for (std::string const &chunk : split_value(escape(value), max_value_bytes)) {
            std::string const chunk_key = key_of_chunk(full_key, index++);
            if (chunk_key.size() > max_key_bytes) {
                return error(OMPX_ERR_ARG,
                             fmt::format("key '{}' is too long for a PMI launcher", key));
            }
            DIOMP_TRY(server_->put(chunk_key, chunk));
        }
        return {};
    }

    result<std::string> get(world_rank owner, std::string_view key) override {
        std::string const full_key = key_of(owner, key);
        error missing(OMPX_ERR_STATE,
                      fmt::format("rank {} has published no '{}'", owner.value(), key));
        auto chunk = server_->get(full_key);
        DIOMP_TRY(chunk);
        auto const first = chunk.value() ? parse_first_chunk(*chunk.value()) : std::nullopt;
        if (!first) {
            return missing;
        }
        std::string escaped(first->second);
        for (int i = 1; i < first->first; ++i) {
            auto next = server_->get(key_of_chunk(full_key, i));
            DIOMP_TRY(next);
            if (!next.value()) {
                return missing;
            }
            escaped += *next.value();
        }
        auto value = unescape(escaped);
        if (!value) {
            return error(OMPX_ERR_SYSTEM,
                         fmt::format("the value '{}' of rank {} is damaged", key, owner.value()));
        }
        return *std::move(value);
    }

    status fence() override { return server_->fence(); }
    status finalize() override {
        end_watch_.stop();
        is_finalized_ = true;
        return server_->finalize();
    }

    void abort(int code, std::string_view message) noexcept override {
        constexpr std::size_t max_message_bytes = 160; // it has been printed already
        server_->abort(code, escape(message.substr(0, max_message_bytes)));
    }

private:
    static std::string key_of(world_rank owner, std::string_view key) {
        return fmt::format("diomp-{}-{}", owner.value(), escape(key));
    }
    static std::string key_of_chunk(const std::string &full_key, int index) {
        return index == 0 ? full_key : fmt::format("{}-{}", full_key, index);
    }

    /// Ranks of this node according to the launcher; all ranks if it does not provide them.
    result<std::vector<world_rank>> launcher_peers() {
        auto mapping = server_->process_mapping();
        if (!mapping) {
            return mapping.take_failure();
        }
        if (mapping.value()) {
            if (auto ranks = ranks_on_node(*mapping.value(), info_.rank.value(), info_.size)) {
                return *std::move(ranks);
            }
        }
        std::vector<world_rank> all_ranks;
        all_ranks.reserve(static_cast<std::size_t>(info_.size));
        for (int rank = 0; rank < info_.size; ++rank) {
            all_ranks.emplace_back(rank);
        }
        return all_ranks;
    }

    pmi_connection wire_;
    end_watch end_watch_; ///< of wire_
    bool is_finalized_ = false;
    std::unique_ptr<pmi_server> server_;
    const char *name_;
    job_info info_;
    std::set<std::string, std::less<>> published_;
};

result<int> number_from(const environment &lookup, const char *variable) {
    const char *const text = lookup(variable);
    std::string_view const view(text != nullptr ? text : "");
    int value = 0;
    auto const parsed = std::from_chars(view.begin(), view.end(), value);
    if (parsed.ec != std::errc() || parsed.ptr != view.end() || value < 0) {
        return error(OMPX_ERR_ARG,
                     fmt::format("{}={} is not a number, but PMI_FD={} is set", variable, view,
                                 lookup("PMI_FD")),
                     "start the program with mpiexec.hydra or srun, or unset PMI_FD for a world of "
                     "one rank");
    }
    return value;
}

/// The native protocol of Slurm's plugin is PMI-2, that of hydra PMI-1.
result<int> version_from(const environment &lookup) {
    const char *const chosen = lookup(version_variable);
    if (chosen == nullptr) {
        return lookup("SLURM_STEP_ID") != nullptr ? 2 : 1;
    }
    std::string_view const version(chosen);
    if (version != "1" && version != "2") {
        return error(OMPX_ERR_ARG,
                     fmt::format("{}={} is not supported: set 1 or 2", version_variable, version));
    }
    return version == "2" ? 2 : 1;
}

} // namespace

bool present(const environment &lookup) { return lookup("PMI_FD") != nullptr; }

result<std::unique_ptr<launcher>> join(const environment &lookup) {
    auto const fd = number_from(lookup, "PMI_FD");
    auto const rank = number_from(lookup, "PMI_RANK");
    auto const size = number_from(lookup, "PMI_SIZE");
    auto const version = version_from(lookup);
    for (auto const *const number : {&fd, &rank, &size, &version}) {
        if (!*number) {
            return error(number->failure().code(), number->failure().message(),
                         number->failure().remedy());
        }
    }
    auto wire = pmi_connection::adopt(fd.value(), fence_limits::from(lookup));
    DIOMP_TRY(wire);
    auto joined = std::make_unique<pmi_launcher>(wire.take(), version.value());
    const char *const job = lookup("PMI_JOBID");
    DIOMP_TRY(joined->start(rank.value(), size.value(), job != nullptr ? job : ""));
    return std::unique_ptr<launcher>(std::move(joined));
}

void forget_environment() {
    for (const char *const variable : {"PMI_FD", "PMI_RANK", "PMI_SIZE"}) {
        unsetenv(variable);
    }
}

} // namespace diomp::launch::pmi
