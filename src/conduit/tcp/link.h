// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A connection: what waits to be written, and the bytes that come in, frame by frame.
//
// Nothing here blocks. Short pieces gather in one buffer and leave together; long ones leave from
// where they lie. The body of a frame goes straight to where its taker wants it.
#pragma once

#include "base/unique_fd.h"
#include "conduit/tcp/wire.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <sys/uio.h>
#include <vector>

namespace diomp::conduit::tcp {

class link;

/// Takes what comes, one connection at a time; may send.
class frame_taker {
public:
    virtual ~frame_taker() = default;
    /// Where a body shall go. nullptr: no rank of this job sends such a frame.
    virtual std::byte *place_body(link &on, const frame &head) = 0;
    /// Its body is there. False as above.
    virtual bool take(link &on, const frame &head, const std::byte *body) = 0;
    /// The first bytes of a connection that has been accepted. False: a stranger.
    virtual bool greet(link &on, const greeting &from) = 0;
};

class peer;

class link {
public:
    /// Data up to this size is copied when it is sent.
    static constexpr std::size_t most_copied = 8192;

    /// A connection that is being opened; `greeting` leaves first.
    link(unique_fd fd, peer &target, const greeting &first);
    /// One that has been accepted.
    explicit link(unique_fd fd) : fd_(std::move(fd)), is_open_(true), awaits_greeting_(true) {}

    [[nodiscard]] int fd() const { return fd_.get(); }
    /// Who is at the other end; nullptr before a greeting.
    [[nodiscard]] peer *target() const { return target_.load(std::memory_order_acquire); }
    void belongs_to(peer &known) { target_.store(&known, std::memory_order_release); }

    // Any thread.
    /// Queues a frame with its data. A large piece of data is in use until `source_free`, if any,
    /// says otherwise: it counts only what is in use on return.
    void send(const frame &head, const void *data, std::size_t nbytes, completion *source_free);
    /// The same with a part in front of the data that is copied.
    void send(const frame &head, std::span<const std::byte> front, const void *data,
              std::size_t nbytes, completion *source_free);
    /// Writes what waits, as far as there is room. True if anything went.
    bool ship();
    [[nodiscard]] bool has_waiting() const {
        return num_waiting_.load(std::memory_order_acquire) > 0;
    }
    /// Copies that wait.
    [[nodiscard]] std::size_t copied_bytes() const {
        return num_copied_.load(std::memory_order_relaxed);
    }
    /// Reads what has come and hands it over. True if anything had. Returns at once if another
    /// thread is at it.
    bool receive(frame_taker &taker);

    enum class state : std::uint8_t { good, unopened, broken };
    /// unopened: what it was to connect to is not there, and nothing has left; waits for
    /// start_again(). broken: nothing goes any more, and sources are free.
    [[nodiscard]] state condition() const { return state_.load(std::memory_order_acquire); }
    void start_again(unique_fd fd);
    void break_off(std::string why);
    /// Why it is not good.
    [[nodiscard]] std::string what_is_wrong();
    /// Something has left or come.
    [[nodiscard]] bool is_open() const { return is_open_.load(std::memory_order_relaxed); }
    /// Treats a connection that takes too long to open as one that cannot be.
    void give_up_opening();

    /// Counts this connection there while something waits, or while it is not good and not buried.
    void count_in(std::atomic<int> &unsettled);
    /// The end of a broken one has been told. False: it had been before.
    [[nodiscard]] bool bury();
    [[nodiscard]] bool is_buried() const { return is_buried_.load(std::memory_order_acquire); }

    /// For bodies that have no place of their own; valid until the frame has been taken.
    [[nodiscard]] std::byte *scratch(std::size_t nbytes) {
        scratch_.resize(std::max(scratch_.size(), nbytes));
        return scratch_.data();
    }

    std::atomic<bool> is_watched_for_room{false};
    std::atomic<std::chrono::steady_clock::time_point> opening_since{
        std::chrono::steady_clock::now()};

private:
    struct piece {
        std::vector<std::byte> copy; ///< or empty:
        const std::byte *data = nullptr;
        std::size_t left = 0;
        completion *source_free = nullptr;
    };

    // Under send_mutex_:
    void append(const void *bytes, std::size_t nbytes);
    void set_aside();
    bool write_some();
    void fail(std::string why);
    void consume(std::size_t nbytes);
    void count_waiting();
    // Under receive_mutex_:
    bool read_some(frame_taker &taker);
    bool parse(frame_taker &taker);
    bool parse_greeting(frame_taker &taker);
    bool begin_frame(frame_taker &taker);
    bool end_frame(frame_taker &taker);

    unique_fd fd_;
    std::atomic<peer *> target_{nullptr};
    std::atomic<bool> is_open_{false};
    std::atomic<state> state_{state::good};
    std::atomic<bool> is_buried_{false};

    std::mutex send_mutex_;
    std::deque<piece> queue_; ///< leaves before gathered_
    std::vector<std::byte> gathered_;
    std::size_t num_gone_ = 0;      ///< bytes of gathered_ that have left
    std::size_t queued_copies_ = 0; ///< bytes
    std::atomic<int> *unsettled_ = nullptr;
    bool is_counted_ = false; ///< there
    bool is_full_ = false;    ///< there was no room the last time
    std::string why_;
    std::atomic<std::size_t> num_waiting_{0}; ///< pieces
    std::atomic<std::size_t> num_copied_{0};

    std::mutex receive_mutex_;
    bool awaits_greeting_ = false;
    std::unique_ptr<std::byte[]> buffer_;
    std::size_t begin_ = 0; ///< of what has not been parsed
    std::size_t end_ = 0;
    std::optional<frame> current_; ///< whose body is coming
    std::byte *body_ = nullptr;
    std::size_t num_body_ = 0; ///< bytes of it that are there
    std::vector<std::byte> scratch_;
};

} // namespace diomp::conduit::tcp
