// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "launch/local/launcher.h"

#include "launch/local/protocol.h"
#include "launch/local/socket.h"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <condition_variable>
#include <cstdlib>
#include <fcntl.h>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace diomp::launch::local {
namespace {

constexpr std::array<const char *, 5> private_variables{fd_variable, rank_variable, size_variable,
                                                        job_variable, node_variable};

error launcher_gone() { return {OMPX_ERR_PEER, "diomp-run has ended or is ending the job"}; }

class local_launcher final : public launcher {
public:
    local_launcher(unique_fd socket, first_packet from, const rank_info_packet &rank_info)
        : socket_(std::move(socket)), watch_(std::move(from.watch)),
          stacks_(std::move(from.stacks)) {
        info_.rank = world_rank(static_cast<int>(rank_info.rank));
        info_.size = static_cast<int>(rank_info.size);
        info_.local = local_rank(static_cast<int>(rank_info.rank - rank_info.node_first));
        info_.local_size = static_cast<int>(rank_info.node_size);
        info_.host = rank_info.host;
        info_.job_id = rank_info.job_id;
        for (int local = 0; local < info_.local_size; ++local) {
            info_.local_ranks.emplace_back(static_cast<int>(rank_info.node_first) + local);
        }
    }

    [[nodiscard]] const job_info &info() const override { return info_; }
    [[nodiscard]] int watch_fd() const override { return watch_.get(); }
    [[nodiscard]] const char *name() const override { return "diomp-run"; }

    status hello() {
        packet_writer packet(packet_type::hello);
        packet.number(static_cast<std::uint32_t>(getpid()));
        return send(packet.take());
    }

    status put(std::string_view key, std::string_view value) override {
        if (key.size() + value.size() > max_entry_bytes) {
            return error(OMPX_ERR_ARG,
                         fmt::format("key-value entry '{}' has {} bytes, the limit is {}", key,
                                     key.size() + value.size(), max_entry_bytes));
        }
        pending_.push_back(
            {static_cast<std::uint32_t>(info_.rank.value()), std::string(key), std::string(value)});
        return {};
    }

    result<std::string> get(world_rank owner, std::string_view key) override {
        {
            std::lock_guard const lock(mutex_);
            auto const found = values_.find(std::pair(owner.value(), std::string(key)));
            if (found != values_.end()) {
                return found->second;
            }
        }
        if (owner.value() < 0 || owner.value() >= info_.size || has_been_delivered(owner)) {
            return not_published(owner, key);
        }
        return query(owner, key);
    }

    status fence() override {
        for (const std::string &packet : encode_entries(pending_)) {
            DIOMP_TRY(send(packet));
        }
        pending_.clear();
        {
            std::lock_guard const lock(mutex_);
            is_fence_done_ = false;
        }
        DIOMP_TRY(send(packet_writer(packet_type::fence).take()));
        return wait_until([this] { return is_fence_done_; });
    }

    status finalize() override { return send(packet_writer(packet_type::finalize).take()); }

    // One send of one packet: safe in any thread, next to a fence in another.
    void abort(int code, std::string_view message) noexcept override {
        [[maybe_unused]] auto const sent = send_abort(packet_type::abort, code, message);
    }

    // One send of one packet, too. A rank that prints no stacks itself (DIOMP_STACKS) does not
    // request those of the others.
    bool give_up(int code, std::string_view message) noexcept override {
        return is_ready_.load() && send_abort(packet_type::give_up, code, message).ok();
    }

    void report_peer_failure(std::optional<world_rank> peer) noexcept override {
        packet_writer packet(packet_type::loss);
        packet.number(peer ? static_cast<std::uint32_t>(peer->value()) : unknown_peer);
        [[maybe_unused]] auto const sent = send(packet.take());
    }

    [[nodiscard]] int stacks_fd() const override { return stacks_.get(); }

    void stacks_ready() noexcept override {
        is_ready_.store(send(packet_writer(packet_type::stacks_ready).take()).ok());
    }

    void stacks_shown() noexcept override {
        [[maybe_unused]] auto const sent = send(packet_writer(packet_type::stacks_shown).take());
    }

private:
    status send_abort(packet_type type, int code, std::string_view message) {
        constexpr std::size_t max_message_bytes = 4096;
        packet_writer packet(type);
        packet.number(static_cast<std::uint32_t>(code));
        packet.text(message.substr(0, max_message_bytes));
        return send(packet.take());
    }

    [[nodiscard]] bool is_local(world_rank rank) const {
        return rank >= info_.local_ranks.front() && rank <= info_.local_ranks.back();
    }

    /// Whether all values of a rank came with the fences.
    [[nodiscard]] bool has_been_delivered(world_rank owner) const {
        return is_local(owner) && is_delivered(owner.value(), info_.local_size);
    }

    static error not_published(world_rank owner, std::string_view key) {
        return {OMPX_ERR_STATE, fmt::format("rank {} has published no '{}'", owner.value(), key)};
    }

    /// Requests a value from diomp-run.
    result<std::string> query(world_rank owner, std::string_view key) {
        std::lock_guard const query_guard(
            query_mutex_); // one request at a time, so replies need no id
        packet_writer request(packet_type::get);
        request.number(static_cast<std::uint32_t>(owner.value()));
        request.text(key);
        {
            std::lock_guard const lock(mutex_);
            reply_.reset();
        }
        DIOMP_TRY(send(request.take()));
        DIOMP_TRY(wait_until([this] { return reply_.has_value(); }));
        std::lock_guard const lock(mutex_);
        if (!reply_->has_value()) {
            return not_published(owner, key);
        }
        values_.insert_or_assign(std::pair(owner.value(), std::string(key)), **reply_);
        return **reply_;
    }

    /// Waits until `condition`, which is called under the mutex, is true. A request may be in
    /// flight while another thread is in a fence, since networks connect on demand. The first
    /// waiting thread receives packets for all.
    template <typename Condition>
    status wait_until(Condition condition) {
        std::unique_lock lock(mutex_);
        while (!condition()) {
            if (is_receiving_) {
                packet_received_.wait(lock);
                continue;
            }
            is_receiving_ = true;
            lock.unlock();
            auto received = receive();
            lock.lock();
            is_receiving_ = false;
            // The other threads then receive by themselves and get the same error.
            packet_received_.notify_all();
            if (!received) {
                return received.take_failure();
            }
            DIOMP_TRY(take(received.value()));
        }
        return {};
    }

    /// Handles a packet of diomp-run. Under the mutex.
    status take(const std::string &bytes) {
        packet_reader packet(bytes);
        switch (packet.type<packet_type>()) {
        case packet_type::fence_done:
            is_fence_done_ = true;
            if (packet.number<std::uint8_t>() != 0) {
                std::erase_if(values_, [this](const auto &each) {
                    return !has_been_delivered(world_rank(each.first.first));
                });
            }
            return {};
        case packet_type::entries: {
            std::vector<entry> items;
            DIOMP_TRY(decode_entries(packet, items));
            for (entry &item : items) {
                values_.insert_or_assign(
                    std::pair(static_cast<int>(item.owner), std::move(item.key)),
                    std::move(item.value));
            }
            return {};
        }
        case packet_type::value:
            reply_.emplace();
            if (packet.number<std::uint8_t>() != 0) {
                reply_->emplace(packet.text());
            }
            return {};
        default:
            return error(OMPX_ERR_SYSTEM, "unexpected packet from diomp-run");
        }
    }

    status send(const std::string &packet) {
        while (::send(socket_.get(), packet.data(), packet.size(), MSG_NOSIGNAL) < 0) {
            if (errno == EINTR) {
                continue;
            }
            if (errno == EPIPE || errno == ECONNRESET) {
                return launcher_gone();
            }
            return system_error("cannot send to diomp-run", errno);
        }
        return {};
    }

    result<std::string> receive() {
        while (true) {
            // The watch pipe is polled as well: no reply comes after the end of the job.
            std::array<pollfd, 2> ready{pollfd{socket_.get(), POLLIN, 0},
                                        pollfd{watch_.get(), POLLIN, 0}};
            if (poll(ready.data(), ready.size(), -1) < 0) {
                if (errno == EINTR) {
                    continue;
                }
                return system_error("cannot wait for diomp-run", errno);
            }
            if (ready[0].revents == 0) {
                return launcher_gone();
            }
            ssize_t const size = recv(socket_.get(), buffer_.get(), max_packet_bytes, MSG_DONTWAIT);
            if (size > 0) {
                return std::string(buffer_.get(), static_cast<std::size_t>(size));
            }
            if (size == 0 || errno == ECONNRESET) {
                return launcher_gone();
            }
            if (errno != EINTR && errno != EAGAIN) {
                return system_error("cannot receive from diomp-run", errno);
            }
        }
    }

    unique_fd socket_;
    unique_fd watch_;
    unique_fd stacks_;
    std::atomic<bool> is_ready_{false}; ///< stacks_ready() has been sent
    job_info info_;
    std::vector<entry> pending_;
    std::mutex query_mutex_; ///< before mutex_
    std::mutex mutex_;       ///< guards what follows, except buffer_ (the receiving thread)
    std::condition_variable packet_received_;
    std::map<std::pair<int, std::string>, std::string> values_;
    std::optional<std::optional<std::string>> reply_; ///< inner: empty if not published
    bool is_fence_done_ = false;
    bool is_receiving_ = false; ///< a thread is in receive()
    /// Not initialized: most packets need few of its pages.
    std::unique_ptr<char[]> buffer_ = std::make_unique_for_overwrite<char[]>(max_packet_bytes);
};

result<int> number_from(const std::function<const char *(const char *)> &lookup,
                        const char *variable) {
    const char *const text = lookup(variable);
    if (text == nullptr) {
        return error(OMPX_ERR_ARG,
                     fmt::format("{} is missing from diomp-run's environment", variable),
                     "start the program with diomp-run, or unset all DIOMP_LAUNCH_ variables");
    }
    std::string_view const view(text);
    int value = 0;
    auto const parsed = std::from_chars(view.begin(), view.end(), value);
    if (parsed.ec != std::errc() || parsed.ptr != view.end() || value < 0) {
        return error(OMPX_ERR_ARG, fmt::format("{}={} is not a number", variable, view),
                     "start the program with diomp-run, or unset all DIOMP_LAUNCH_ variables");
    }
    return value;
}

/// Checks that the descriptor is a socket of diomp-run's type before anything is read from it: a
/// wrong number could be any file of the program.
status check_socket(int fd) {
    int domain = 0;
    int type = 0;
    socklen_t length = sizeof(int);
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) != 0 ||
        getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) != 0 || domain != AF_UNIX ||
        type != SOCK_SEQPACKET) {
        return error(OMPX_ERR_ARG, fmt::format("{}={} is not diomp-run's socket", fd_variable, fd),
                     "a program between diomp-run and this one may have closed it; it must leave "
                     "inherited descriptors open");
    }
    return {};
}

} // namespace

bool present(const std::function<const char *(const char *)> &lookup) {
    for (const char *const variable : private_variables) {
        if (lookup(variable) != nullptr) {
            return true;
        }
    }
    return false;
}

void forget_environment() {
    for (const char *const variable : private_variables) {
        unsetenv(variable);
    }
}

result<std::unique_ptr<launcher>> join(const std::function<const char *(const char *)> &lookup) {
    auto fd = number_from(lookup, fd_variable);
    auto rank = number_from(lookup, rank_variable);
    auto size = number_from(lookup, size_variable);
    for (auto *const number : {&fd, &rank, &size}) {
        if (!*number) {
            return number->take_failure();
        }
    }
    DIOMP_TRY(check_socket(fd.value()));
    unique_fd socket(fd.value());
    if (fcntl(socket.get(), F_SETFD, FD_CLOEXEC) != 0) {
        return system_error("cannot set FD_CLOEXEC on diomp-run's socket", errno);
    }
    auto first = receive_first(socket.get());
    if (!first) {
        return first.take_failure();
    }
    auto rank_info = decode_rank_info(first.value().bytes);
    if (!rank_info) {
        return rank_info.take_failure();
    }
    const char *const job = lookup(job_variable);
    if (static_cast<int>(rank_info.value().rank) != rank.value() ||
        static_cast<int>(rank_info.value().size) != size.value() || job == nullptr ||
        rank_info.value().job_id != job) {
        return error(OMPX_ERR_ARG,
                     fmt::format("the environment says rank {} of {} in job {}, diomp-run says "
                                 "rank {} of {} in job {}",
                                 rank.value(), size.value(), job == nullptr ? "(none)" : job,
                                 rank_info.value().rank, rank_info.value().size,
                                 rank_info.value().job_id),
                     "do not set DIOMP_LAUNCH_ variables by hand");
    }
    auto joined =
        std::make_unique<local_launcher>(std::move(socket), first.take(), rank_info.value());
    DIOMP_TRY(joined->hello());
    return std::unique_ptr<launcher>(std::move(joined));
}

} // namespace diomp::launch::local
