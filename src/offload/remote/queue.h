// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An OpenMP queue on a remote device. Its operations execute in order and are issued without
// waiting:
//
//  - Small puts, launches and small gets are collected in a batch. synchronize() and test() send
//    it as one message; one reply returns the bytes of the gets.
//  - Large puts to the slot start at once and write directly from the program's memory into the
//    device's. The batch is sent when they are complete at the target.
//  - Large gets from the slot start after the reply and read directly into the program's memory.
//  - For GPU memory that the network can access, large puts and gets are operations of the batch:
//    the session starts the transfers in order.
//  - Work that OpenMP need not wait for is deferred (deferred_work.h): the queue is empty again as
//    soon as it has been sent.
//
// The memory of a transfer therefore stays in use until the queue has been waited for, which is the
// contract of OpenMP's plugins.
#pragma once

#include "offload/remote/client.h"
#include "transport/conduit.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace diomp::offload::remote {

/// One thread at a time, except for functions marked otherwise.
class queue {
public:
    queue(client &owner, remote_device &on, std::uint64_t number)
        : owner_(owner), device_(on), number_(number) {}

    [[nodiscard]] remote_device &device() { return device_; }

    status put(std::uint64_t address, const void *source, std::size_t nbytes);
    status get(void *destination, std::uint64_t address, std::size_t nbytes);
    /// Copies to another device's memory, or within this device's memory.
    status copy(world_rank to, std::uint64_t destination, std::uint64_t source, std::size_t nbytes);
    status launch(const launch_arguments &arguments);
    /// Orders later operations of this queue after the event.
    status wait_for(const event &earlier);
    /// Returns an event for all operations that the queue has been given so far.
    [[nodiscard]] event record();

    /// Blocks until all operations are complete. The queue is empty then, also after an error.
    status synchronize();
    /// Makes progress without blocking; whether all operations are complete or deferred.
    result<bool> test();
    /// Returns idle pages of the slot to the device's host: a deferred operation that is ordered
    /// after all other deferred work.
    status release_idle_pages();
    /// Orders later operations after all deferred work of the device.
    status order_after_all_deferred();

    /// Whether a batch is complete. Any thread.
    [[nodiscard]] bool has_completed(std::uint64_t batch) const {
        return done_.load(std::memory_order_acquire) >= batch;
    }
    /// Sends the pending operations up to a batch, for another queue that waits for it. False: the
    /// batch is complete already and the session may never receive it, so a wait operation for it
    /// must not be sent. Any thread.
    result<bool> send_up_to(std::uint64_t batch);

    /// Handles a reply. Any thread.
    void handle_reply(const batch_reply &reply);

private:
    enum class phase { batching, putting, running, printing, getting };
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

    // The functions below are called with mutex_ held, unless marked otherwise.
    status reserve_space(std::size_t nbytes, std::unique_lock<std::mutex> &lock);
    /// Orders later operations after the deferred work of other queues; with `include_own` also
    /// after this queue's, for operations that are not part of a batch.
    status order_after_deferred(std::unique_lock<std::mutex> &lock, bool include_own = false);
    status append_wait(const event &earlier, std::unique_lock<std::mutex> &lock);
    /// Whether OpenMP need not wait for the pending operations.
    [[nodiscard]] bool can_defer() const;
    status put_large(std::uint64_t address, const void *source, std::size_t nbytes);
    status put_staged(std::uint64_t address, const void *source, std::size_t nbytes,
                      std::unique_lock<std::mutex> &lock);
    /// Appends a put (fetch) or get (deliver) that the session runs, between `client_memory` and
    /// the device.
    status append_zero_copy(operation op, std::uint64_t address, const void *client_memory,
                            std::size_t nbytes, std::unique_lock<std::mutex> &lock);
    /// Called without mutex_.
    status copy_staged(remote_device &target, std::uint64_t destination, std::uint64_t source,
                       std::size_t nbytes);
    /// Synchronizes the queue if no space is free otherwise.
    result<std::uint64_t> allocate_stage(std::size_t nbytes, std::unique_lock<std::mutex> &lock);
    status get_staged(void *destination, std::uint64_t address, std::size_t nbytes,
                      std::unique_lock<std::mutex> &lock);
    void get_large(void *destination, std::uint64_t address, std::size_t nbytes);
    void append_copy(world_rank to, std::uint64_t destination, std::uint64_t source,
                     std::size_t nbytes);
    /// Marks work of the session that the client's puts must not overtake.
    void mark_copy();
    [[nodiscard]] bool overlaps_pending_put(std::uint64_t address, std::size_t nbytes) const;
    /// Sends the pending operations; `last` requests a reply.
    void transmit(bool last);
    /// Runs the next steps that need no waiting; true when all is complete, or deferred if allowed.
    result<bool> advance(bool may_defer = false);
    void defer();
    void transmit_deferred(); ///< the batch has been added to deferred_work
    status consume_reply();
    /// Called without mutex_: waits until `ready`, which is called with it, returns true.
    template <typename Ready>
    status wait_until(Ready ready, const char *what);
    status check_puts();
    void reset();
    void discard_pending();
    void set_done_up_to(std::uint64_t batch); ///< any thread

    // Reports to an observer.
    using time_point = client_observer::time_point;
    struct transfer {
        client_observer::direction which;
        client_observer::carrier by;
        std::size_t nbytes;
        time_point begin;
    };
    /// The current time if there is an observer; otherwise the clock is not read.
    [[nodiscard]] time_point now() const;
    /// Records a transfer that travels inside a message and was given to the queue at `begin`.
    void record_in_message(client_observer::direction which, std::size_t nbytes, time_point begin);
    /// Records the start of a transfer.
    void record_started(client_observer::direction which, client_observer::carrier by,
                        std::size_t nbytes);
    /// Records that the puts of the network are complete; with `all`, all transfers.
    void record_finished(bool all);

    client &owner_;
    remote_device &device_;
    std::uint64_t const number_;
    std::mutex mutex_; ///< not held across a wait
    phase phase_ = phase::batching;
    packet_writer pending_operations_;
    std::uint64_t batch_ = 1;            ///< number of the batch being collected
    bool has_work_ = false;              ///< sent or pending since the last reply
    bool has_session_work_ = false;      ///< has_work_ includes launches, copies or waits
    bool has_copies_ = false;            ///< has_work_ includes copies or large gets
    std::vector<std::uint64_t> kernels_; ///< launched since the last reply
    bool has_transmitted_ = false;       ///< operations have been sent since the last reply
    bool expects_reply_ = false;         ///< after phase::batching: operations were sent
    std::vector<range> put_ranges_;      ///< of pending_operations_
    std::vector<small_get> small_gets_;
    std::size_t small_get_bytes_ = 0;
    std::vector<large_get> large_gets_;
    std::vector<std::uint64_t> stage_buffers_; ///< released when the queue is empty
    std::shared_ptr<transport::completion> put_completion_;
    bool has_large_puts_ = false;
    std::shared_ptr<transport::completion> get_completion_;
    /// Completions of abandoned transfers: the conduit may still count there.
    std::vector<std::shared_ptr<transport::completion>> abandoned_;
    std::uint64_t output_bytes_[2] = {0, 0}; ///< to be printed before synchronize() returns
    std::atomic<std::uint64_t> done_{0};
    std::vector<transfer> transfers_in_flight_; ///< for an observer
    time_point transmitted_at_;
    int num_unacknowledged_ = 0; ///< deferred batches since a reply was requested
    std::uint64_t ordered_generation_ =
        0;                   ///< deferred work that later operations are ordered after
    std::mutex reply_mutex_; ///< leaf lock; protects the next two
    std::string reply_;
    std::uint64_t awaited_batch_ = 0; ///< batch whose reply is expected
    std::atomic<bool> has_reply_{false};
};

} // namespace diomp::offload::remote
