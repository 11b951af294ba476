// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The least cost of one-sided transfers over a network, without a library: two processes and one
// TCP connection. A put is a header and the data in one sendmsg; a put that is followed by its
// fence requests an acknowledgement, so that the pair costs one round trip; a get is a request and
// the data. Both sides poll their socket without sleeping.
//
// Rank 0 is the process that is started; it starts rank 1 with a remote-shell command:
//     bench_tcp --rsh "ssh" --host other-node put get
#include "bench/suite.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

namespace diomp::bench {
namespace {

[[noreturn]] void fail_errno(const std::string &what) {
    std::fprintf(stderr, "tcp: %s: %s\n", what.c_str(), std::strerror(errno));
    std::exit(1);
}

enum class kind : std::uint32_t { put, put_acknowledged, acknowledgement, get, data, barrier };

struct header {
    kind what = kind::put;
    std::uint32_t unused = 0;
    std::uint64_t offset = 0; ///< in the peer's arena; for data: in the reader's destination
    std::uint64_t nbytes = 0;
    double value = 0; ///< contribution to a barrier
};

class connection {
public:
    explicit connection(int socket) : socket_(socket) {
        const int on = 1;
        setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        // Data in flight should stay in the level 3 cache. With the system's default, up to 4 MiB,
        // large transfers between hosts of one machine take more than twice as long where that
        // cache has 32 MiB.
        const int send_buffer_bytes = static_cast<int>(
            std::clamp(sysconf(_SC_LEVEL3_CACHE_SIZE) / 128, 208L * 1024, 1024L * 1024));
        setsockopt(socket_, SOL_SOCKET, SO_SNDBUF, &send_buffer_bytes, sizeof(send_buffer_bytes));
    }

    void send(const header &head, const void *data = nullptr) {
        const std::size_t payload = data == nullptr ? 0 : head.nbytes;
        iovec chunks[2] = {{const_cast<header *>(&head), sizeof(head)},
                           {const_cast<void *>(data), payload}};
        std::size_t remaining = sizeof(head) + payload;
        while (remaining > 0) {
            msghdr message{};
            message.msg_iov = chunks;
            message.msg_iovlen = 2;
            const ssize_t sent = sendmsg(socket_, &message, MSG_NOSIGNAL);
            if (sent < 0) {
                fail_errno("send");
            }
            remaining -= static_cast<std::size_t>(sent);
            skip(chunks, static_cast<std::size_t>(sent));
        }
    }

    void receive(void *to, std::size_t nbytes) {
        for (std::size_t done = 0; done < nbytes;) {
            const ssize_t got =
                recv(socket_, static_cast<char *>(to) + done, nbytes - done, MSG_DONTWAIT);
            if (got > 0) {
                done += static_cast<std::size_t>(got);
            } else if (got == 0) {
                fail_errno("the peer has ended");
            } else if (errno != EAGAIN && errno != EINTR) {
                fail_errno("receive");
            }
        }
    }

private:
    static void skip(iovec (&chunks)[2], std::size_t nbytes) {
        for (iovec &chunk : chunks) {
            const std::size_t skipped = std::min(nbytes, chunk.iov_len);
            chunk.iov_base = static_cast<char *>(chunk.iov_base) + skipped;
            chunk.iov_len -= skipped;
            nbytes -= skipped;
        }
    }

    int socket_;
};

/// A library for the suite, with two ranks of which rank 0 starts transfers.
class raw_tcp {
public:
    raw_tcp(int rank, int socket, std::size_t arena_bytes)
        : rank_(rank), peer_(socket), arena_(private_buffer(arena_bytes)) {}

    static const char *name() { return "tcp"; }
    static const char *conduit() { return "tcp"; }
    [[nodiscard]] int rank() const { return rank_; }
    static int size() { return 2; }
    void barrier() { barrier_exchange(0); }
    double max_over_ranks(double mine) { return std::max(mine, barrier_exchange(mine)); }
    [[noreturn]] void fail(const std::string &message) const {
        std::fprintf(stderr, "tcp: rank %d: %s\n", rank_, message.c_str());
        std::exit(1);
    }
    char *symmetric(std::size_t nbytes) {
        char *const result = arena_.get() + used_;
        used_ += (nbytes + 4095) / 4096 * 4096;
        return result;
    }

    static bool allows_threads(int threads) { return threads == 1; }

    // Deferred until the next call shows whether a fence follows.
    void put(int /*rank*/, void *dst, const void *src, std::size_t nbytes) {
        flush(kind::put);
        pending_ = {kind::put, 0, offset_of(dst), nbytes, 0};
        source_ = src;
    }
    void fence(int /*rank*/) {
        if (source_ != nullptr) {
            flush(kind::put_acknowledged);
            serve_until(kind::acknowledgement);
        }
    }
    void get(void *dst, int rank, const void *src, std::size_t nbytes) {
        start_get(dst, rank, src, nbytes);
        finish_gets(rank);
    }
    void start_get(void *dst, int /*rank*/, const void *src, std::size_t nbytes) {
        peer_.send({kind::get, 0, offset_of(src), nbytes, 0});
        destinations_.push_back(dst);
    }
    void finish_gets(int /*rank*/) {
        for (void *const destination : destinations_) {
            destination_ = static_cast<char *>(destination);
            serve_until(kind::data);
        }
        destinations_.clear();
    }
    static std::vector<std::string> buffer_kinds() { return {"private"}; }
    static buffer make_buffer(const std::string & /*kind*/, std::size_t nbytes) {
        return private_buffer(nbytes);
    }

private:
    [[nodiscard]] std::uint64_t offset_of(const void *address) const {
        return static_cast<std::uint64_t>(static_cast<const char *>(address) - arena_.get());
    }
    void flush(kind how) {
        if (source_ != nullptr) {
            pending_.what = how;
            peer_.send(pending_, source_);
            source_ = nullptr;
        }
    }
    double barrier_exchange(double mine) {
        fence(1 - rank_);
        peer_.send({kind::barrier, 0, 0, 0, mine});
        if (!arrived_) {
            serve_until(kind::barrier);
        }
        arrived_ = false;
        return value_;
    }
    void serve_until(kind awaited) {
        for (;;) {
            header head;
            peer_.receive(&head, sizeof(head));
            char *const target_ptr = arena_.get() + head.offset;
            switch (head.what) {
            case kind::put:
            case kind::put_acknowledged:
                peer_.receive(target_ptr, head.nbytes);
                if (head.what == kind::put_acknowledged) {
                    peer_.send({kind::acknowledgement, 0, 0, 0, 0});
                }
                break;
            case kind::get:
                peer_.send({kind::data, 0, 0, head.nbytes, 0}, target_ptr);
                break;
            case kind::data:
                peer_.receive(destination_, head.nbytes);
                break;
            case kind::barrier: // may arrive while this side waits for an acknowledgement
                arrived_ = true;
                value_ = head.value;
                break;
            default:
                break;
            }
            if (head.what == awaited) {
                return;
            }
        }
    }

    int rank_;
    connection peer_;
    buffer arena_;
    std::size_t used_ = 0;
    header pending_;
    const void *source_ = nullptr;
    std::vector<void *> destinations_; ///< of pending gets, in order
    char *destination_ = nullptr;      ///< destination of the next data
    bool arrived_ = false;             ///< the peer is in the next barrier
    double value_ = 0;                 ///< the peer's contribution to the barrier
};

/// Creates a socket; replaces a congestion control that paces (bbr), since its timer would be
/// measured. A socket that a listening socket accepts inherits this.
int new_socket() {
    const int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char congestion[16] = {};
    socklen_t length = sizeof(congestion) - 1;
    if (getsockopt(made, IPPROTO_TCP, TCP_CONGESTION, congestion, &length) == 0 &&
        std::strncmp(congestion, "bbr", 3) == 0 &&
        setsockopt(made, IPPROTO_TCP, TCP_CONGESTION, "cubic", 5) != 0) {
        setsockopt(made, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
    }
    return made;
}

int listen_anywhere(std::uint16_t &port) {
    const int listener = new_socket();
    sockaddr_in address{};
    address.sin_family = AF_INET;
    socklen_t length = sizeof(address);
    if (listener < 0 || bind(listener, reinterpret_cast<sockaddr *>(&address), length) != 0 ||
        listen(listener, 1) != 0 ||
        getsockname(listener, reinterpret_cast<sockaddr *>(&address), &length) != 0) {
        fail_errno("listen");
    }
    port = ntohs(address.sin_port);
    return listener;
}

int connect_to(const std::string &host, const std::string &port) {
    addrinfo wanted{};
    wanted.ai_family = AF_INET;
    wanted.ai_socktype = SOCK_STREAM;
    addrinfo *found = nullptr;
    if (getaddrinfo(host.c_str(), port.c_str(), &wanted, &found) != 0) {
        fail_errno("no address of " + host);
    }
    const int made = new_socket();
    if (made < 0 || connect(made, found->ai_addr, found->ai_addrlen) != 0) {
        fail_errno("connect to " + host);
    }
    freeaddrinfo(found);
    return made;
}

/// Returns the command line of rank 1, for a shell.
std::string command_of_peer(int argc, char **argv, const std::string &rsh, const std::string &host,
                            std::uint16_t port) {
    char own_host[256] = {};
    gethostname(own_host, sizeof(own_host) - 1);
    std::string command = rsh + " " + host;
    for (int i = 0; i < argc; ++i) {
        command += std::string(" '") + argv[i] + "'";
    }
    return command + " --connect " + own_host + " --port " + std::to_string(port);
}

} // namespace
} // namespace diomp::bench

int main(int argc, char **argv) {
    using namespace diomp::bench;
    std::string rsh = "ssh";
    std::string host;
    std::string connect_host;
    std::string connect_port;
    options const wanted = parse_benchmarks(
        "Limits of the network: put, get and a barrier over one TCP connection", argc, argv,
        {.texts = {{"--rsh", "command that runs a command on a host, as ssh does", &rsh},
                   {"--host", "where rank 1 runs", &host, true},
                   {"--connect", nullptr, &connect_host},
                   {"--port", nullptr, &connect_port}}});
    const int rank = connect_host.empty() ? 0 : 1;
    if (sysconf(_SC_NPROCESSORS_ONLN) >= 2) {
        detail::bind_thread(rank);
    }
    pid_t other = -1;
    int socket = -1;
    if (rank == 1) {
        socket = connect_to(connect_host, connect_port);
    } else {
        std::uint16_t port = 0;
        const int listener = listen_anywhere(port);
        const std::string command = command_of_peer(argc, argv, rsh, host, port);
        other = fork();
        if (other == 0) {
            execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
            _exit(127);
        }
        socket = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
        if (socket < 0) {
            fail_errno("accept");
        }
    }
    raw_tcp library(rank, socket, 2 * symmetric_bytes(wanted) + mib);
    bool ok = run_and_report(library, wanted);
    if (rank == 0) {
        close(socket);
        int status = 0;
        ok = waitpid(other, &status, 0) == other && ok;
    }
    return ok ? 0 : 1;
}
