// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/tcp/tuning.h"

#include "base/cpu.h"
#include "base/log.h"
#include "base/unique_fd.h"

#include <climits>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace diomp::transport::tcp {
namespace {

// Between processes of a machine, what the receiver has not read yet should be in the cache that
// their cores share, for several connections at a time. Small buffers cost wake-ups: on an Intel
// Sapphire Rapids (260 MiB), a get of 16 MiB takes 3.25 ms with 256 KiB and 2.8 ms with 1 MiB; on
// an AMD Zen 5 (32 MiB) it takes twice the time with the system's 4 MiB.
std::size_t default_send_buffer_bytes() {
    constexpr std::size_t cache_share = 128;
    return std::clamp(level3_cache_bytes() / cache_share, std::size_t{256} << 10,
                      std::size_t{1} << 20);
}

constexpr std::size_t max_name_bytes = 16; // TCP_CA_NAME_MAX of the kernel

bool use_congestion(int fd, const std::string &name) {
    return ::setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(),
                        static_cast<socklen_t>(name.size())) == 0;
}

/// The first algorithm without pacing that the system allows this process; "" if there is none.
std::string first_unpaced(int fd) {
    for (const char *const name : {"cubic", "reno"}) {
        if (use_congestion(fd, name)) {
            return name;
        }
    }
    return {};
}

} // namespace

std::string congestion_of(int fd) {
    std::array<char, max_name_bytes> name{};
    socklen_t size = name.size() - 1;
    return ::getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(), &size) == 0
               ? std::string(name.data())
               : std::string();
}

result<tuning> tuning::create(std::size_t send_buffer_bytes, const std::string &congestion,
                              unsigned distant_rtt_us) {
    tuning made;
    made.distant_rtt_us_ = distant_rtt_us;
    made.send_buffer_bytes_ = static_cast<int>(std::min<std::size_t>(
        send_buffer_bytes > 0 ? send_buffer_bytes : default_send_buffer_bytes(), INT_MAX / 2));
    unique_fd const probe(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    std::string const own = congestion_of(probe.get());
    if (congestion != "auto") {
        if (!use_congestion(probe.get(), congestion)) {
            return error(OMPX_ERR_ARG,
                         fmt::format("the system does not allow the congestion control '{}' of "
                                     "DIOMP_TCP_CONGESTION: {}",
                                     congestion, ::strerrordesc_np(errno)),
                         "use one of /proc/sys/net/ipv4/tcp_allowed_congestion_control, or auto");
        }
        made.initial_congestion_ = congestion;
    } else if (own.starts_with("bbr")) {
        made.initial_congestion_ = first_unpaced(probe.get());
        made.distant_congestion_ = made.initial_congestion_.empty() ? std::string() : own;
        log(log_level::info, "tcp: the system's congestion control is {}; within a cluster {}", own,
            made.initial_congestion_.empty() ? "nothing else is allowed"
                                             : made.initial_congestion_);
    }
    return made;
}

void tuning::prepare(int fd) const {
    int const on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (send_buffer_bytes_ > 0) {
        ::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &send_buffer_bytes_, sizeof(send_buffer_bytes_));
    }
    if (!initial_congestion_.empty()) {
        use_congestion(fd, initial_congestion_);
    }
}

void tuning::adapt(int fd) const {
    tcp_info about{};
    socklen_t size = sizeof(about);
    if (!distant_congestion_.empty() &&
        ::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &about, &size) == 0 &&
        about.tcpi_rtt > distant_rtt_us_) {
        use_congestion(fd, distant_congestion_);
        log(log_level::debug, "tcp: a peer is {} us away: {}", about.tcpi_rtt, distant_congestion_);
    }
}

} // namespace diomp::transport::tcp
