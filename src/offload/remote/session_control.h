// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The client's side of a session: requests over its control connection, its output, and the reason
// for its loss.
#pragma once

#include "offload/remote/control.h"
#include "offload/remote/protocol.h"

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace diomp::offload::remote {

/// Requests to a session, and whether it works. Any thread.
class session_control {
public:
    /// `label` names the device in messages; it outlives this object.
    session_control(control_connection connection, const std::string &label)
        : connection_(std::move(connection)), label_(label) {}

    [[nodiscard]] control_connection &connection() { return connection_; }

    /// Excludes other requests while the result exists.
    [[nodiscard]] std::unique_lock<std::mutex> lock_requests() {
        return std::unique_lock(request_mutex_);
    }
    /// Sends a frame and waits for its reply; `doing` describes the request in errors. Call with
    /// the result of lock_requests().
    result<std::string> request(std::string_view packet, const char *doing);
    /// Called every second in which a request waits: transfers something, so that the network
    /// notices a session that has stopped, whose connection stays open. Before the first request.
    void set_ping(std::function<void()> ping) { ping_ = std::move(ping); }
    /// Adds a reply that the client's thread has received.
    void add_reply(std::string_view packet);

    /// Adds an encoded error of a call in a region; the first one is kept.
    void add_call_error(std::string_view encoded);
    /// That error; nullopt: none since the last call.
    std::optional<call_error> take_call_error();

    /// The session has sent its last frame after frame::stop.
    void mark_stopped();
    /// Waits until the session has stopped or failed, up to `limit`.
    void wait_until_stopped(std::chrono::seconds limit);

    /// Why the device failed; "" while it works.
    [[nodiscard]] std::string failure() const;
    [[nodiscard]] bool has_failed() const { return failed_.load(std::memory_order_acquire); }
    void fail(const std::string &why);
    /// The network has reported the device as lost. The service may send a more precise reason, so
    /// the device is marked as failed only after a time limit.
    void suspect(std::string why);
    /// Called by the client's thread: fails the device if the suspicion has timed out. Returns
    /// whether a suspicion is still pending.
    bool check_suspicion();
    /// Waits until a pending suspicion is resolved. Returns the failure, or "".
    std::string explain_loss();

private:
    status send(std::string_view packet); ///< adds the label to errors

    control_connection connection_;
    std::string const &label_;
    std::function<void()> ping_; ///< empty before the network exists
    std::mutex request_mutex_;   ///< one request at a time
    std::atomic<bool> failed_{false};
    mutable std::mutex mutex_; ///< protects the rest
    std::condition_variable state_changed_;
    bool is_stopped_ = false;
    std::string failure_;
    struct {
        std::string why; ///< empty: there is none
        std::chrono::steady_clock::time_point since;
    } suspicion_;
    std::deque<std::string> replies_;
    std::optional<call_error> call_error_;
};

/// Output of a session, written to the streams of this process: 0: standard output, 1: standard
/// error.
class session_output {
public:
    /// Called by the client's thread.
    void write(std::size_t stream, std::string_view bytes);
    /// Whether so many bytes of each stream have been written. Any thread.
    [[nodiscard]] bool has_written(const std::array<std::uint64_t, 2> &nbytes) const {
        return written_[0].load(std::memory_order_acquire) >= nbytes[0] &&
               written_[1].load(std::memory_order_acquire) >= nbytes[1];
    }

private:
    std::array<std::atomic<std::uint64_t>, 2> written_{};
};

} // namespace diomp::offload::remote
