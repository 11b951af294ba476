// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/remote/session_control.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <unistd.h>

namespace diomp::offload::remote {
namespace {

constexpr std::chrono::seconds suspicion_timeout{1};

} // namespace

status session_control::send(std::string_view packet) {
    status sent = connection_.send(packet);
    if (sent) {
        return sent;
    }
    std::string const why = explain_loss();
    return error(sent.failure().code(),
                 why.empty() ? fmt::format("{}: {}", label_, sent.failure().message()) : why);
}

result<std::string> session_control::request(std::string_view packet, const char *doing) {
    DIOMP_TRY(send(packet));
    std::unique_lock lock(mutex_);
    // No timeout: an image may run its constructors for any time. The connection closes if the
    // service is lost, or the network reports it, and that ends the wait.
    constexpr std::chrono::seconds ping_interval{1};
    while (!state_changed_.wait_for(lock, ping_interval,
                                    [this] { return has_failed() || !replies_.empty(); })) {
        if (ping_) {
            lock.unlock();
            ping_();
            lock.lock();
        }
    }
    if (has_failed()) {
        return error(OMPX_ERR_PEER, fmt::format("{} (while {})", failure_, doing));
    }
    std::string reply = std::move(replies_.front());
    replies_.pop_front();
    return reply;
}

void session_control::add_reply(std::string_view packet) {
    std::lock_guard const guard(mutex_);
    replies_.emplace_back(packet);
    state_changed_.notify_all();
}

void session_control::add_call_error(std::string_view encoded) {
    auto decoded = decode_call_error(encoded);
    std::lock_guard const guard(mutex_);
    if (decoded && !call_error_) {
        call_error_ = decoded.take();
    }
}

std::optional<call_error> session_control::take_call_error() {
    std::lock_guard const guard(mutex_);
    return std::exchange(call_error_, std::nullopt);
}

void session_control::mark_stopped() {
    std::lock_guard const guard(mutex_);
    is_stopped_ = true;
    state_changed_.notify_all();
}

void session_control::wait_until_stopped(std::chrono::seconds limit) {
    std::unique_lock lock(mutex_);
    state_changed_.wait_for(lock, limit, [this] { return has_failed() || is_stopped_; });
}

std::string session_control::failure() const {
    std::lock_guard const guard(mutex_);
    return failure_;
}

void session_control::fail(const std::string &why) {
    {
        std::lock_guard const guard(mutex_);
        if (failed_.load(std::memory_order_relaxed)) {
            return;
        }
        failure_ = fmt::format("{}: {}", label_, why);
        failed_.store(true, std::memory_order_release);
    }
    state_changed_.notify_all();
    connection_.shut_down();
}

void session_control::suspect(std::string why) {
    std::lock_guard const guard(mutex_);
    if (suspicion_.why.empty()) {
        suspicion_.why = std::move(why);
        suspicion_.since = std::chrono::steady_clock::now();
    }
}

bool session_control::check_suspicion() {
    std::string why;
    {
        std::lock_guard const guard(mutex_);
        if (suspicion_.why.empty() || failed_.load(std::memory_order_relaxed)) {
            return false;
        }
        if (std::chrono::steady_clock::now() - suspicion_.since < suspicion_timeout) {
            return true;
        }
        why = suspicion_.why;
    }
    fail(why);
    return false;
}

std::string session_control::explain_loss() {
    std::unique_lock lock(mutex_);
    if (!suspicion_.why.empty()) {
        state_changed_.wait_for(lock, 2 * suspicion_timeout, [this] { return has_failed(); });
    }
    return failure_;
}

/// Writes after the output that stdio has buffered.
void session_output::write(std::size_t stream, std::string_view bytes) {
    std::fflush(stream == 0 ? stdout : stderr);
    int const fd = stream == 0 ? STDOUT_FILENO : STDERR_FILENO;
    for (std::string_view rest = bytes; !rest.empty();) {
        ssize_t const written = ::write(fd, rest.data(), rest.size());
        if (written > 0) {
            rest.remove_prefix(static_cast<std::size_t>(written));
        } else if (written == 0 || errno != EINTR) {
            break; // the reader has closed it
        }
    }
    written_[stream].fetch_add(bytes.size(), std::memory_order_release);
}

} // namespace diomp::offload::remote
