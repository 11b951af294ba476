// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "launch/gaspi/process.h"

#include "launch/gaspi/addresses.h"
#include "launch/gaspi/cores.h"
#include "launch/gaspi/ports.h"

#include <fmt/format.h>

#include <GASPI.h>
#include <GASPI_Ext.h>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <limits>
#include <sys/mman.h>
#include <thread>

/// GPI-2's configuration. gaspi_config_set of 1.6 ignores the port of the TCP device, so it is set
/// here; without it two jobs cannot share a host. nullptr if a version does not export the symbol.
extern "C" [[gnu::weak]] gaspi_config_t glb_gaspi_cfg; // NOLINT: GPI-2's name

namespace diomp::launch::gaspi {
namespace {

constexpr gaspi_timeout_t start_timeout_ms = 120'000;
constexpr auto start_timeout = std::chrono::milliseconds{start_timeout_ms};
constexpr const char *addresses_key = "gaspi.host";
constexpr const char *free_key = "gaspi.ports";
constexpr const char *cores_key = "gaspi.cores";
constexpr std::size_t kv_area_bytes = std::size_t{128} << 10;
constexpr gaspi_timeout_t ping_timeout_ms = 1000;
constexpr const char *check_network =
    "check for firewalls between the hosts and for other processes on these ports";
constexpr const char *use_another_conduit = "use another conduit: DIOMP_CONDUIT=ucx";

/// State of GPI-2, kept until the process ends.
struct gpi_process {
    bool is_running = false;
    int rank = 0;
    int size = 1;
    unique_fd base; ///< reserves the ports
    void *kv_area = nullptr;
};
gpi_process &state() {
    static gpi_process only;
    return only;
}

constexpr std::array<const char *, 6> variables{"GASPI_RANK",   "GASPI_NRANKS",
                                                "GASPI_SOCKET", "GASPI_MFILE",
                                                "GASPI_MASTER", "GASPI_SET_NUMA_SOCKET"};

/// Blocks signals during calls of GPI-2 that create threads or write to peers: GPI-2's threads then
/// handle no signals of the program, and a failed peer does not kill this process by SIGPIPE. The
/// destructor restores the disposition of SIGPIPE, which GPI-2 changes.
class quiet_signals {
public:
    quiet_signals() {
        sigset_t all;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &before_);
        ::sigaction(SIGPIPE, nullptr, &pipe_);
    }
    ~quiet_signals() {
        sigset_t pipe;
        ::sigemptyset(&pipe);
        ::sigaddset(&pipe, SIGPIPE);
        timespec const none{};
        while (::sigismember(&before_, SIGPIPE) == 0 && ::sigtimedwait(&pipe, nullptr, &none) > 0) {
        }
        ::sigaction(SIGPIPE, &pipe_, nullptr);
        ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
    quiet_signals(const quiet_signals &) = delete;
    quiet_signals &operator=(const quiet_signals &) = delete;

private:
    sigset_t before_{};
    struct sigaction pipe_{};
};

/// GPI-2's machine file, which maps ranks to hosts. Only rank 0 needs it; the destructor removes
/// it.
class machine_file {
public:
    status write(const std::vector<std::string> &hosts) {
        const char *const folder = std::getenv("TMPDIR");
        path_ = fmt::format("{}/diomp-gaspi-XXXXXX", folder != nullptr ? folder : "/tmp");
        unique_fd const file(::mkstemp(path_.data()));
        if (!file.valid()) {
            int const code = errno;
            std::string const tried = std::exchange(path_, {});
            return system_error("making GPI-2's machine file " + tried, code);
        }
        std::string const text = fmt::format("{}\n", fmt::join(hosts, "\n"));
        if (::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
            return system_error("writing GPI-2's machine file " + path_, errno);
        }
        return {};
    }
    ~machine_file() {
        if (!path_.empty()) {
            ::unlink(path_.c_str());
        }
    }
    machine_file() = default;
    machine_file(const machine_file &) = delete;
    machine_file &operator=(const machine_file &) = delete;
    [[nodiscard]] const char *path() const { return path_.empty() ? "/dev/null" : path_.c_str(); }

private:
    std::string path_;
};

status configure(int size, int base) {
    gaspi_config_t config;
    gaspi_config_get(&config);
    config.logger = 0;
    config.sn_port = static_cast<gaspi_uint>(base);
    config.queue_num = num_queues;
    config.queue_size_max = queue_entries;
    config.notification_num = num_notifications(size);
    // Otherwise groups would use a port that is the same for all jobs.
    config.build_infrastructure = GASPI_TOPOLOGY_NONE;
    if (gaspi_return_t const code = gaspi_config_set(config); code != GASPI_SUCCESS) {
        return gaspi_error("setting up GPI-2", code);
    }
    if (&glb_gaspi_cfg != nullptr && config.network == GASPI_ETHERNET) {
        glb_gaspi_cfg.dev_config.params.tcp.port = static_cast<gaspi_uint>(base + device_distance);
    }
    return {};
}

/// Calls `attempt` until it returns true. False after start_timeout.
template <typename Attempt>
bool retry_until_timeout(Attempt &&attempt) {
    auto const until = std::chrono::steady_clock::now() + start_timeout;
    while (!attempt()) {
        if (std::chrono::steady_clock::now() > until) {
            return false;
        }
        std::this_thread::sleep_for(std::chrono::microseconds{50});
    }
    return true;
}

gaspi_segment_id_t id_of(segment which) { return static_cast<gaspi_segment_id_t>(which); }

status connect_and_notify(int peer) {
    auto const rank = static_cast<gaspi_rank_t>(peer);
    auto const own = static_cast<gaspi_notification_id_t>(state().rank);
    gaspi_return_t code = gaspi_connect(rank, start_timeout_ms);
    if (code == GASPI_SUCCESS) {
        code =
            gaspi_notify(id_of(segment::kv_area), rank, own, 1, launcher_queue, start_timeout_ms);
    }
    if (code == GASPI_SUCCESS) {
        code = gaspi_wait(launcher_queue, start_timeout_ms);
    }
    if (code != GASPI_SUCCESS) {
        return gaspi_error(fmt::format("connecting to rank {}", peer), code, check_network);
    }
    return {};
}

/// Higher ranks connect to lower ones and notify them. A notified rank uses that connection: a
/// second one would break the order of its operations towards the peer.
status connect_all() {
    for (int peer = 0; peer < state().rank; ++peer) {
        DIOMP_TRY(connect_and_notify(peer));
    }
    for (int peer = state().rank + 1; peer < state().size; ++peer) {
        bool const has_connected = retry_until_timeout([peer] {
            gaspi_notification_id_t which = 0;
            auto const id = static_cast<gaspi_notification_id_t>(peer);
            return gaspi_notify_waitsome(id_of(segment::kv_area), id, 1, &which, GASPI_TEST) ==
                   GASPI_SUCCESS;
        });
        if (!has_connected) {
            return error(OMPX_ERR_TIMEOUT, fmt::format("rank {} has not connected in time", peer),
                         check_network);
        }
        gaspi_notification_t value = 0;
        gaspi_notify_reset(id_of(segment::kv_area), static_cast<gaspi_notification_id_t>(peer),
                           &value);
        DIOMP_TRY(connect_and_notify(peer));
    }
    return {};
}

/// Starts GPI-2 when all its variables are set. `cores`: of the ranks of this host.
status run(int rank, int size, int base, const std::vector<std::string> &cores) {
    if (size > std::numeric_limits<gaspi_rank_t>::max()) {
        return error(OMPX_ERR_UNSUPPORTED, fmt::format("GPI-2 does not support {} ranks", size),
                     use_another_conduit);
    }
    quiet_signals const quiet;
    DIOMP_TRY(configure(size, base));
    gaspi_return_t const code = [&] {
        shared_cores const scope(cores);
        return gaspi_proc_init(start_timeout_ms);
    }();
    for (const char *const variable : variables) {
        ::unsetenv(variable); // children of this rank must not join
    }
    if (code != GASPI_SUCCESS) {
        return gaspi_error(fmt::format("starting GPI-2 (ports from {})", base), code,
                           check_network);
    }
    state().is_running = true;
    state().rank = rank;
    state().size = size;
    state().kv_area =
        ::mmap(nullptr, kv_area_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (state().kv_area == MAP_FAILED) {
        return system_error("mapping the key-value area of this rank", errno);
    }
    DIOMP_TRY(register_segment(segment::kv_area, state().kv_area, kv_area_bytes));
    return connect_all();
}

result<std::vector<std::string>> exchange(launcher &launcher, const char *key,
                                          const std::string &own) {
    DIOMP_TRY(launcher.put(key, own));
    DIOMP_TRY(launcher.fence());
    std::vector<std::string> all;
    for (int peer = 0; peer < launcher.info().size; ++peer) {
        auto value = launcher.get(world_rank{peer}, key);
        DIOMP_TRY(value);
        all.push_back(value.take());
    }
    return all;
}

int number_on_host(const std::vector<std::string> &hosts, std::size_t rank) {
    int number = 0;
    for (std::size_t i = 0; i < rank; ++i) {
        number += hosts[i] == hosts[rank] ? 1 : 0;
    }
    return number;
}

/// Selects a base that is free on all hosts, and reserves it. Collective.
result<int> agree_on_base(launcher &launcher, int number) {
    std::vector<int> const bases = candidate_bases(launcher.info().job_id);
    std::vector<unique_fd> reserved;
    std::string own;
    for (int const base : bases) {
        reserved.push_back(reserve_base(base, number));
        own += reserved.back().valid() ? '1' : '0';
    }
    auto all = exchange(launcher, free_key, own);
    DIOMP_TRY(all);
    for (std::size_t i = 0; i < bases.size(); ++i) {
        bool free_everywhere = true;
        for (std::string const &theirs : all.value()) {
            free_everywhere = free_everywhere && i < theirs.size() && theirs[i] == '1';
        }
        if (free_everywhere) {
            state().base = std::move(reserved[i]);
            return bases[i];
        }
    }
    return error(OMPX_ERR_SYSTEM, "no port range for GPI-2 is free on all hosts",
                 "GPI-2 needs ports from 10240 to 31743: end processes that use them");
}

} // namespace

error gaspi_error(const std::string &operation, int code, std::string remedy) {
    auto const known = static_cast<gaspi_return_t>(code);
    return error(known == GASPI_TIMEOUT ? OMPX_ERR_TIMEOUT : OMPX_ERR_SYSTEM,
                 fmt::format("{}: {}", operation, gaspi_error_str(known)), std::move(remedy));
}

std::span<std::byte> kv_area() {
    return {static_cast<std::byte *>(state().kv_area), kv_area_bytes};
}

bool is_alive(int rank) {
    quiet_signals const quiet;
    return gaspi_proc_ping(static_cast<gaspi_rank_t>(rank), ping_timeout_ms) != GASPI_ERROR;
}

void kill(int rank) noexcept {
    quiet_signals const quiet;
    gaspi_proc_kill(static_cast<gaspi_rank_t>(rank), ping_timeout_ms);
}

status register_segment(segment which, void *memory, std::size_t nbytes) {
    constexpr const char *too_large = "networks that pin memory need DIOMP_SEGMENT_SIZE and "
                                      "DIOMP_DEVICE_SEGMENT_SIZE, and `ulimit -l` above them";
    gaspi_segment_id_t const id = id_of(which);
    gaspi_return_t code = gaspi_segment_bind(id, memory, nbytes, 0);
    if (code != GASPI_SUCCESS) {
        return gaspi_error(fmt::format("registering {} bytes of memory with GPI-2", nbytes), code,
                           too_large);
    }
    // Each rank begins with the next one, so that not all contact rank 0 at once.
    for (int i = 1; i < state().size; ++i) {
        int const peer = (state().rank + i) % state().size;
        code = gaspi_segment_register(id, static_cast<gaspi_rank_t>(peer), start_timeout_ms);
        if (code != GASPI_SUCCESS) {
            return gaspi_error(fmt::format("registering a segment at rank {}", peer), code);
        }
    }
    for (int peer = 0; peer < state().size; ++peer) {
        bool const known = retry_until_timeout([&] {
            gaspi_size_t size = 0;
            return gaspi_segment_size(id, static_cast<gaspi_rank_t>(peer), &size) ==
                       GASPI_SUCCESS &&
                   size != 0;
        });
        if (!known) {
            return error(OMPX_ERR_TIMEOUT,
                         fmt::format("rank {} has registered no segment in time", peer));
        }
    }
    return {};
}

status start(launcher &launcher) {
    if (state().is_running) {
        return {};
    }
    auto texts = exchange(launcher, addresses_key, encode_addresses(own_addresses()));
    DIOMP_TRY(texts);
    std::vector<host_addresses> all_addresses;
    for (std::string const &text : texts.value()) {
        all_addresses.push_back(decode_addresses(text));
    }
    auto all_cores = exchange(launcher, cores_key, own_cores());
    DIOMP_TRY(all_cores);
    auto const &job = launcher.info();
    std::vector<std::string> cores;
    for (std::size_t i = 0; i < all_addresses.size(); ++i) {
        if (all_addresses[i].node == all_addresses[job.rank.index()].node) {
            cores.push_back(all_cores.value()[i]);
        }
    }
    std::vector<std::string> const hosts = choose_addresses(all_addresses);
    int const number = number_on_host(hosts, job.rank.index());
    if (number >= max_ranks_per_host) {
        return error(OMPX_ERR_UNSUPPORTED,
                     fmt::format("GPI-2 has at most {} ranks per host", max_ranks_per_host),
                     use_another_conduit);
    }
    auto base = agree_on_base(launcher, number);
    DIOMP_TRY(base);
    machine_file machines;
    if (job.rank.value() == 0) {
        DIOMP_TRY(machines.write(hosts));
    }
    ::setenv("GASPI_RANK", std::to_string(job.rank.value()).c_str(), 1);
    ::setenv("GASPI_NRANKS", std::to_string(job.size).c_str(), 1);
    ::setenv("GASPI_SOCKET", std::to_string(number).c_str(), 1);
    ::setenv("GASPI_MFILE", machines.path(), 1);
    ::unsetenv("GASPI_SET_NUMA_SOCKET"); // placement is the launcher's
    return run(job.rank.value(), job.size, base.value(), cores);
}

status start_by_environment(int rank, int size) {
    // The name of the machine file is the same for all ranks of a job and differs between jobs.
    const char *const file = std::getenv("GASPI_MFILE");
    return run(rank, size, candidate_bases(file != nullptr ? file : "").front(), {});
}

} // namespace diomp::launch::gaspi
