// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A connection: what waits to be written, and the bytes that come in, frame by frame.
//
// Nothing here blocks. Short pieces gather in one buffer and leave together; long ones leave from
// where they lie. The body of a frame goes straight to where its taker wants it.
#pragma once

#include "base/short_mutex.h"
#include "base/unique_fd.h"
#include "conduit/tcp/gathering.h"
#include "conduit/tcp/sealed_stream.h"
#include "conduit/tcp/wire.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <pthread.h>
#include <span>
#include <string>
#include <sys/uio.h>
#include <vector>

namespace diomp::conduit::tcp {

/// Of errors of a socket: it may go better the next time.
constexpr bool is_momentary(int code) {
    return code == EAGAIN || code == EWOULDBLOCK || code == EINTR;
}

class link;

/// Takes what comes, one connection at a time; may send.
class frame_taker {
public:
    virtual ~frame_taker() = default;
    /// Where a body shall go; `front` are head.head bytes before it. nullptr: no rank of this job
    /// sends such a frame.
    virtual std::byte *place_body(link &on, const frame &head,
                                  std::span<const std::byte> front) = 0;
    /// Its body is there. False as above.
    virtual bool take(link &on, const frame &head, std::span<const std::byte> front,
                      const std::byte *body) = 0;
};

class peer;

class link {
public:
    /// Data up to this size is copied when it is sent, that of puts up to the other: a copy costs
    /// less than a packet for the flush that follows most of them.
    static constexpr std::size_t most_copied = 8 * 1024;
    static constexpr std::size_t most_copied_of_puts = 64 * 1024;
    /// Puts up to this size wait apart where several threads put.
    static constexpr std::size_t most_nested = 1024;
    static constexpr bool is_copied(kind what, std::size_t nbytes) {
        return nbytes <= (what == kind::put ? most_copied_of_puts : most_copied);
    }

    /// A connection that is being opened: nothing comes or leaves before open() and release().
    explicit link(peer &target) : target_(&target), state_(state::opening), is_held_(true) {}
    /// A connection that is open. Its ends have proved who they are; plain without a stream.
    link(unique_fd fd, peer &target, std::unique_ptr<sealed_stream> sealed = nullptr)
        : fd_(std::move(fd)), target_(&target), sealed_(std::move(sealed)) {}
    /// A connection of a peer to which there is another one: no frame may come.
    explicit link(unique_fd fd) : fd_(std::move(fd)) {}

    [[nodiscard]] int fd() const { return fd_.get(); }
    [[nodiscard]] bool is_sealed() const { return sealed_ != nullptr; }
    /// The rank at the other end; nullptr if there is another connection to it.
    [[nodiscard]] peer *target() const { return target_.load(std::memory_order_acquire); }
    void belongs_to(peer &known) { target_.store(&known, std::memory_order_release); }

    // Any thread.
    /// Queues a frame with its data. A large piece of data is in use until `source_free`, if any,
    /// says otherwise: it counts only what is in use on return.
    void send(const frame &head, const void *data, std::size_t nbytes, completion *source_free);
    /// The same with a part in front of the data that is copied.
    void send(const frame &head, std::span<const std::byte> front, const void *data,
              std::size_t nbytes, completion *source_free);
    /// The same with a put, counted in `num_puts` when it has its place in the row; small ones of
    /// threads that put side by side have none before collect_puts(). If `brings_flush` a flush
    /// leaves with it, and the data is not copied; returns its number, else 0.
    std::uint64_t send_put(const frame &head, const void *data, completion &source_free,
                           std::atomic<std::uint64_t> &num_puts, bool brings_flush);
    /// Gives all puts that have been sent so far their places.
    void collect_puts();
    /// Writes what waits, as far as there is room, or has another thread do it that is writing.
    /// True if anything went here.
    bool ship();
    /// Something could leave if there were room.
    [[nodiscard]] bool has_waiting() const {
        const link &here = last();
        return here.has_gathered_.load(std::memory_order_acquire) ||
               here.has_leaving_.load(std::memory_order_acquire);
    }
    /// Copies that wait.
    [[nodiscard]] std::size_t copied_bytes() const {
        const link &here = last();
        return here.num_gathered_copies_.load(std::memory_order_relaxed) +
               here.num_leaving_copies_.load(std::memory_order_relaxed);
    }
    /// Of the messages between two rounds of progress the first few leave by themselves, so that
    /// they come soon; many in a row leave together. Counts may get lost.
    [[nodiscard]] bool may_leave_alone(std::uint32_t round) {
        constexpr int most_alone = 2;
        if (last_round_.exchange(round, std::memory_order_relaxed) != round) {
            num_in_round_.store(0, std::memory_order_relaxed);
        }
        return num_in_round_.fetch_add(1, std::memory_order_relaxed) < most_alone;
    }
    /// The other end takes a held connection for both directions. False: this is none.
    [[nodiscard]] bool release();
    /// Instead of a held connection the one is used that the other end has opened: what waits here
    /// goes there, and what is sent here from now on. Nothing more comes or leaves here. False:
    /// this is none.
    [[nodiscard]] bool give_way_to(link &next);
    /// Another thread has written last. Then who asks a socket in vain makes writers sleep.
    [[nodiscard]] bool is_written_by_others() const {
        ::pthread_t const writer = last_writer_.load(std::memory_order_relaxed);
        return writer != ::pthread_t{} && writer != ::pthread_self();
    }
    /// Reads what has come and hands it over. True if anything had. Returns at once if another
    /// thread is at it.
    bool receive(frame_taker &taker);

    enum class state : std::uint8_t { good, opening, broken };
    /// opening: before open(). broken: nothing goes any more, and sources are free.
    [[nodiscard]] state condition() const { return state_.load(std::memory_order_acquire); }
    /// The connection that was being opened is there; what waits leaves after release(). False: a
    /// broken one.
    [[nodiscard]] bool open(unique_fd fd, std::unique_ptr<sealed_stream> sealed = nullptr);
    void break_off(std::string why);
    /// The cause of state::broken.
    [[nodiscard]] std::string what_is_wrong();

    /// Counts this connection there while something waits, or while it is not good and not buried.
    void count_in(std::atomic<int> &unsettled);
    /// The end of a broken one has been told. False: it had been before.
    [[nodiscard]] bool bury();
    [[nodiscard]] bool is_buried() const { return is_buried_.load(std::memory_order_acquire); }

    /// What is on its way to this place goes to scratch from now on.
    void divert(const std::byte *place);
    /// For bodies that have no place of their own; valid until the frame has been taken.
    [[nodiscard]] std::byte *scratch(std::size_t nbytes) {
        scratch_.resize(std::max(scratch_.size(), nbytes));
        return scratch_.data();
    }

    std::atomic<bool> is_watched_for_room{false};

private:
    /// What gathers beyond this leaves at once.
    static constexpr std::size_t most_gathered = 16 * 1024;
    struct piece {
        std::vector<std::byte> copy; ///< or empty:
        const std::byte *data = nullptr;
        std::size_t left = 0;
        completion *source_free = nullptr;
    };

    [[nodiscard]] bool is_shared();
    void share();
    [[nodiscard]] bool has_nested() const {
        return num_nested_.load(std::memory_order_acquire) > 0;
    }
    void nest_put(const frame &head, const void *data, std::atomic<std::uint64_t> &num_puts);
    void empty_nest(put_nest &full); ///< under its mutex
    void place_puts(const gathering &puts, std::uint64_t num, std::atomic<std::uint64_t> &counter);
    std::uint64_t send_in_order(const frame &head, std::span<const std::byte> front,
                                const void *data, std::size_t nbytes, completion *source_free,
                                std::atomic<std::uint64_t> *num_puts, bool brings_flush);
    // Under gather_mutex_:
    void set_aside(std::vector<std::byte> &&next_buffer);
    void count_gathered();
    // Under write_mutex_:
    bool take_gathered();
    bool write_some();
    ssize_t write_pieces(bool &is_all);
    ssize_t write_sealed(bool &is_all);
    [[nodiscard]] bool has_unsent() const {
        return !leaving_.empty() || (sealed_ != nullptr && sealed_->has_unsent());
    }
    void consume(std::size_t nbytes);
    void count_leaving();
    // Under both:
    void settle();
    void fail(std::string why);
    [[nodiscard]] const link &last() const {
        const link *const next = successor_.load(std::memory_order_acquire);
        return next == nullptr ? *this : *next;
    }
    // Under receive_mutex_:
    [[nodiscard]] std::size_t room_behind_body() const;
    ssize_t read_into(std::byte *body, std::size_t missing, bool may_receive);
    [[nodiscard]] bool is_drained() const { return sealed_ == nullptr || sealed_->is_drained(); }
    [[nodiscard]] std::string describe_end(ssize_t got, int code) const;
    bool read_some(frame_taker &taker);
    bool parse(frame_taker &taker);
    [[nodiscard]] bool has_head() const;
    bool begin_frame(frame_taker &taker);
    bool end_frame(frame_taker &taker);

    unique_fd fd_;
    std::atomic<peer *> target_{nullptr};
    std::unique_ptr<sealed_stream> sealed_; ///< set before state::good; null: plain
    std::atomic<state> state_{state::good};
    std::atomic<bool> is_buried_{false};
    std::atomic<link *> successor_{nullptr}; ///< set under write_mutex_ and gather_mutex_
    std::atomic<::pthread_t> last_writer_{};
    std::atomic<std::uint32_t> last_round_{0};
    std::atomic<int> num_in_round_{0};

    // Who sends gathers, for a moment; who writes takes all that has gathered, and others gather on
    // while the system is at it. Locked in this order, receive_mutex_ before both.
    std::mutex write_mutex_;
    short_mutex gather_mutex_;
    std::atomic<bool> is_ship_wanted_{false};
    std::atomic<bool> is_full_{false}; ///< there was no room the last time
    // Under gather_mutex_:
    std::deque<piece> queue_;
    gathering gathered_;            ///< behind it
    std::size_t queued_copies_ = 0; ///< bytes
    std::atomic<int> *unsettled_ = nullptr;
    bool is_counted_ = false; ///< there
    bool is_held_ = false;    ///< nothing is taken
    std::string why_;
    // Under write_mutex_:
    std::deque<piece> leaving_; ///< before queue_
    std::size_t leaving_copies_ = 0;
    std::vector<std::byte> spare_; ///< empty; for the memory

    std::atomic<::pthread_t> first_putter_{};
    std::atomic<put_nests *> nests_{nullptr}; ///< once several threads have put
    std::unique_ptr<put_nests> nests_owner_;  ///< under gather_mutex_
    std::atomic<int> num_nested_{0};          ///< nests with something

    std::atomic<bool> has_gathered_{false};
    std::atomic<bool> has_leaving_{false};
    std::atomic<std::size_t> num_gathered_copies_{0}; ///< bytes
    std::atomic<std::size_t> num_leaving_copies_{0};

    std::mutex receive_mutex_;
    std::unique_ptr<std::byte[]> buffer_;
    std::size_t begin_ = 0; ///< of what has not been parsed
    std::size_t end_ = 0;
    std::optional<frame> current_;                      ///< whose body is coming
    std::array<std::byte, most_bulk_head_bytes> front_; ///< of it
    std::byte *body_ = nullptr;
    std::size_t num_body_ = 0; ///< bytes of it that are there
    std::vector<std::byte> scratch_;
};

} // namespace diomp::conduit::tcp
