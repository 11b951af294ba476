// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One of OpenMP's queues on a remote device. Its operations happen in order and are posted without
// waiting:
//
//  - Small puts, launches and small gets gather in a batch, which leaves as one message when the
//    queue is waited for or asked, and comes back as one reply with the bytes of the gets.
//  - Large puts go straight from the program's memory into the device's, at once. The batch leaves
//    when they have landed.
//  - Large gets go straight back after the reply.
//  - With memory of a GPU that the network reaches, large puts and gets are operations of the
//    batch: the session moves the bytes when it is their turn.
//  - What OpenMP need not wait for is posted (posted.h): the queue is empty again when it has been
//    sent.
//
// So the memory that a transfer names is in use until the queue has been waited for, as OpenMP's
// plugins have it.
#pragma once

#include "conduit/conduit.h"
#include "offload/remote/client.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace diomp::offload::remote {

/// One thread at a time, except where told.
class queue {
public:
    queue(client &owner, remote_device &on, std::uint64_t number)
        : owner_(owner), device_(on), number_(number) {}

    [[nodiscard]] remote_device &device() { return device_; }

    status put(std::uint64_t address, const void *source, std::size_t nbytes);
    status get(void *destination, std::uint64_t address, std::size_t nbytes);
    /// Straight to another device's memory, or within the own one's.
    status copy(world_rank to, std::uint64_t destination, std::uint64_t source, std::size_t nbytes);
    status launch(const launch_arguments &arguments);
    /// What follows happens after the event.
    status wait_for(const event &earlier);
    /// All that the queue has been given.
    [[nodiscard]] event record();

    /// Blocks until all is done. The queue is empty then, after an error as well.
    status synchronize();
    /// Goes on without blocking; whether all is done, or posted.
    result<bool> test();
    /// Gives pages of the slot that are idle back to the device's host, behind all that has been
    /// posted, and is posted itself.
    status return_pages();
    /// What comes happens after all that has been posted on the device.
    status follow_all();

    /// Whether the event has happened. Any thread.
    [[nodiscard]] bool has_passed(std::uint64_t batch) const {
        return done_.load(std::memory_order_acquire) >= batch;
    }
    /// Sends what has gathered up to a batch, for a queue that waits for it. False: the batch has
    /// passed and the session will not hear of it. Any thread.
    result<bool> send_up_to(std::uint64_t batch);

    /// A reply came. Any thread.
    void take_reply(const reply &answer);

private:
    enum class phase { gathering, landing, running, printing, fetching };
    struct small_get {
        void *destination;
        std::size_t nbytes;
    };
    struct large_get {
        void *destination;
        std::uint64_t address;
        std::size_t nbytes;
    };
    struct range {
        std::uint64_t begin;
        std::uint64_t end;
    };

    // All below with mutex_, unless told otherwise.
    status make_room(std::size_t nbytes, std::unique_lock<std::mutex> &lock);
    /// What other queues have posted happens first. `and_own`: what this one has, too, though what
    /// comes is no part of a batch.
    status follow(std::unique_lock<std::mutex> &lock, bool and_own = false);
    status append_wait(const event &earlier, std::unique_lock<std::mutex> &lock);
    /// OpenMP need not wait for what has gathered.
    [[nodiscard]] bool can_post() const;
    status put_large(std::uint64_t address, const void *source, std::size_t nbytes);
    status stage_put(std::uint64_t address, const void *source, std::size_t nbytes,
                     std::unique_lock<std::mutex> &lock);
    /// Of a put (fetch) or get (deliver): the session does it, between `here` and the device.
    status append_straight(operation way, std::uint64_t address, const void *here,
                           std::size_t nbytes, std::unique_lock<std::mutex> &lock);
    /// Without mutex_.
    status copy_by_stage(remote_device &target, std::uint64_t destination, std::uint64_t source,
                         std::size_t nbytes);
    /// Waits for what the queue has been given if there is no room otherwise.
    result<std::uint64_t> take_stage(std::size_t nbytes, std::unique_lock<std::mutex> &lock);
    status stage_get(void *destination, std::uint64_t address, std::size_t nbytes,
                     std::unique_lock<std::mutex> &lock);
    void get_large(void *destination, std::uint64_t address, std::size_t nbytes);
    void append_copy(world_rank to, std::uint64_t destination, std::uint64_t source,
                     std::size_t nbytes);
    /// Work of the session, behind which puts of this side must stay.
    void note_copy();
    [[nodiscard]] bool touches_gathered(std::uint64_t address, std::size_t nbytes) const;
    /// Sends the gathered operations.
    void ship(bool last);
    /// The next steps that need no waiting; true when all is done, or posted if it may be.
    result<bool> advance(bool may_post = false);
    void post();
    void ship_posted(); ///< which posted_work knows of
    status take_answer();
    /// Without mutex_: waits until `ready`, called with it, says so.
    template <typename Ready>
    status wait_until(Ready ready, const char *what);
    status landed();
    void reset();
    void forget_gathered();
    void raise_done(std::uint64_t batch); ///< any thread

    // For an observer.
    using time_point = observer::time_point;
    struct flight {
        observer::direction which;
        observer::carrier by;
        std::size_t nbytes;
        time_point begin;
    };
    /// The clock, if there is one.
    [[nodiscard]] time_point now() const;
    /// Of a transfer that has been given to the queue since `begin` and is part of a message.
    void note_moved(observer::direction which, std::size_t nbytes, time_point begin);
    /// Of one that is under way from now on.
    void note_flight(observer::direction which, observer::carrier by, std::size_t nbytes);
    /// Those that the network puts are there. `all`: so are the others.
    void note_landed(bool all);

    client &owner_;
    remote_device &device_;
    std::uint64_t const number_;
    std::mutex mutex_; ///< not held across a wait
    phase phase_ = phase::gathering;
    packet_writer gathered_;
    std::uint64_t batch_ = 1;            ///< number of the one that gathers
    bool has_work_ = false;              ///< sent or gathered, since the last reply
    bool computes_ = false;              ///< launches, copies or waits among that
    bool copies_ = false;                ///< copies or large gets among that
    std::vector<std::uint64_t> kernels_; ///< launched among that
    bool shipped_ = false;               ///< a part has been sent since the last reply
    bool ships_ = false;                 ///< past phase::gathering: there was something to send
    std::vector<range> put_ranges_;      ///< of gathered_
    std::vector<small_get> small_gets_;
    std::size_t small_get_bytes_ = 0;
    std::vector<large_get> large_gets_;
    std::vector<std::uint64_t> stages_; ///< memory to give back at the end
    std::shared_ptr<conduit::completion> landing_;
    bool has_large_puts_ = false;
    std::shared_ptr<conduit::completion> fetching_;
    /// Of transfers that were given up: the conduit may still count there.
    std::vector<std::shared_ptr<conduit::completion>> abandoned_;
    std::uint64_t output_bytes_[2] = {0, 0}; ///< that belong in front of the end
    std::atomic<std::uint64_t> done_{0};
    std::vector<flight> flights_; ///< of what observers want to know
    time_point shipped_at_;
    int num_unanswered_ = 0;     ///< batches posted since an answer was asked for
    std::uint64_t followed_ = 0; ///< what had been posted when follow() last looked
    std::mutex reply_mutex_;     ///< leaf lock over the next two
    std::string reply_;
    std::uint64_t awaited_ = 0; ///< batch that a reply is expected for
    std::atomic<bool> has_reply_{false};
};

} // namespace diomp::offload::remote
