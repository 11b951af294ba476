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
#include <mutex>
#include <optional>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace diomp::launch::local {
namespace {

constexpr std::array<const char *, 5> private_variables{fd_variable, rank_variable, size_variable,
                                                        job_variable, node_variable};

error launcher_gone() { return {OMPX_ERR_PEER, "diomp-run is gone or is ending the job"}; }

class local_launcher final : public launcher {
public:
    local_launcher(unique_fd socket, first_packet from, const welcome_packet &welcome)
        : socket_(std::move(socket)), watch_(std::move(from.watch)),
          stacks_(std::move(from.stacks)) {
        info_.rank = world_rank(static_cast<int>(welcome.rank));
        info_.size = static_cast<int>(welcome.size);
        info_.local = local_rank(static_cast<int>(welcome.rank - welcome.node_first));
        info_.local_size = static_cast<int>(welcome.node_size);
        info_.host = welcome.host;
        info_.job_id = welcome.job_id;
        for (int local = 0; local < info_.local_size; ++local) {
            info_.local_ranks.emplace_back(static_cast<int>(welcome.node_first) + local);
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
        if (owner.value() < 0 || owner.value() >= info_.size || is_local(owner)) {
            return never_put(owner, key); // values of the own node have come with the fence
        }
        return ask(owner, key);
    }

    status fence() override {
        for (const std::string &packet : encode_entries(pending_)) {
            DIOMP_TRY(send(packet));
        }
        pending_.clear();
        {
            std::lock_guard const lock(mutex_);
            fence_is_over_ = false;
        }
        DIOMP_TRY(send(packet_writer(packet_type::fence).take()));
        return wait_until([this] { return fence_is_over_; });
    }

    status finalize() override { return send(packet_writer(packet_type::finalize).take()); }

    // One send of one packet: safe in any thread, next to a fence in another.
    void abort(int code, std::string_view message) noexcept override {
        [[maybe_unused]] auto const sent = send_end(packet_type::abort, code, message);
    }

    // The same. A rank that shows no stacks itself (DIOMP_STACKS) does not ask for the others'.
    bool give_up(int code, std::string_view message) noexcept override {
        return is_ready_.load() && send_end(packet_type::give_up, code, message).ok();
    }

    void report_loss(std::optional<world_rank> peer) noexcept override {
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
    status send_end(packet_type type, int code, std::string_view message) {
        constexpr std::size_t longest = 4096;
        packet_writer packet(type);
        packet.number(static_cast<std::uint32_t>(code));
        packet.text(message.substr(0, longest));
        return send(packet.take());
    }

    [[nodiscard]] bool is_local(world_rank rank) const {
        return rank >= info_.local_ranks.front() && rank <= info_.local_ranks.back();
    }

    static error never_put(world_rank owner, std::string_view key) {
        return {OMPX_ERR_STATE, fmt::format("rank {} has published no '{}'", owner.value(), key)};
    }

    /// A value of another node, from diomp-run.
    result<std::string> ask(world_rank owner, std::string_view key) {
        std::lock_guard const turn(asking_); // one question at a time, so its answer needs no name
        packet_writer question(packet_type::get);
        question.number(static_cast<std::uint32_t>(owner.value()));
        question.text(key);
        {
            std::lock_guard const lock(mutex_);
            answer_.reset();
        }
        DIOMP_TRY(send(question.take()));
        DIOMP_TRY(wait_until([this] { return answer_.has_value(); }));
        std::lock_guard const lock(mutex_);
        if (!answer_->has_value()) {
            return never_put(owner, key);
        }
        values_.insert_or_assign(std::pair(owner.value(), std::string(key)), **answer_);
        return **answer_;
    }

    /// Until `is_there`, which is asked under the mutex. A question may be on its way while another
    /// thread is in a fence: the network connects when it must. Whoever waits first reads, for all.
    template <typename Condition>
    status wait_until(Condition is_there) {
        std::unique_lock lock(mutex_);
        while (!is_there()) {
            if (is_read_) {
                something_came_.wait(lock);
                continue;
            }
            is_read_ = true;
            lock.unlock();
            auto received = receive();
            lock.lock();
            is_read_ = false;
            // The others then read by themselves, and find the same failure.
            something_came_.notify_all();
            if (!received) {
                return received.take_failure();
            }
            DIOMP_TRY(take(received.value()));
        }
        return {};
    }

    /// Under the mutex.
    status take(const std::string &bytes) {
        packet_reader packet(bytes);
        switch (packet.type<packet_type>()) {
        case packet_type::fence_done:
            fence_is_over_ = true;
            if (packet.number<std::uint8_t>() != 0) {
                std::erase_if(values_, [this](const auto &each) {
                    return !is_local(world_rank(each.first.first));
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
            answer_.emplace();
            if (packet.number<std::uint8_t>() != 0) {
                answer_->emplace(packet.text());
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
            // The watch pipe as well: when the job ends, no answer will come.
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
            ssize_t const size = recv(socket_.get(), buffer_.data(), buffer_.size(), MSG_DONTWAIT);
            if (size > 0) {
                return std::string(buffer_.data(), static_cast<std::size_t>(size));
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
    std::mutex asking_; ///< before mutex_
    std::mutex mutex_;  ///< guards what follows, but for buffer_: whoever reads has that
    std::condition_variable something_came_;
    std::map<std::pair<int, std::string>, std::string> values_;
    std::optional<std::optional<std::string>> answer_; ///< to the question; inside: if it was put
    bool fence_is_over_ = false;
    bool is_read_ = false; ///< a thread is in receive()
    std::vector<char> buffer_ = std::vector<char>(max_packet_bytes);
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

/// Checks that the descriptor is a socket of diomp-run's kind before anything is read from it: with
/// a wrong number it could be any file of the program.
status check_socket(int fd) {
    int domain = 0;
    int type = 0;
    socklen_t length = sizeof(int);
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) != 0 ||
        getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) != 0 || domain != AF_UNIX ||
        type != SOCK_SEQPACKET) {
        return error(OMPX_ERR_ARG, fmt::format("{}={} is not diomp-run's socket", fd_variable, fd),
                     "a program between diomp-run and this one may have closed it: let it keep "
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
    auto welcome = decode_welcome(first.value().bytes);
    if (!welcome) {
        return welcome.take_failure();
    }
    const char *const job = lookup(job_variable);
    if (static_cast<int>(welcome.value().rank) != rank.value() ||
        static_cast<int>(welcome.value().size) != size.value() || job == nullptr ||
        welcome.value().job_id != job) {
        return error(OMPX_ERR_ARG,
                     fmt::format("the environment says rank {} of {} in job {}, diomp-run says "
                                 "rank {} of {} in job {}",
                                 rank.value(), size.value(), job == nullptr ? "(none)" : job,
                                 welcome.value().rank, welcome.value().size,
                                 welcome.value().job_id),
                     "do not set DIOMP_LAUNCH_ variables by hand");
    }
    auto joined =
        std::make_unique<local_launcher>(std::move(socket), first.take(), welcome.value());
    DIOMP_TRY(joined->hello());
    return std::unique_ptr<launcher>(std::move(joined));
}

} // namespace diomp::launch::local
