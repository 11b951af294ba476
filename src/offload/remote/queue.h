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

#include "offload/remote/batch_builder.h"
#include "offload/remote/client.h"
#include "offload/remote/network_transfers.h"
#include "offload/remote/queue_recorder.h"
#include "offload/remote/queue_replies.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>

namespace diomp::offload::remote {

/// One thread at a time, except for functions marked otherwise.
class queue {
public:
    queue(client &owner, remote_device &on, std::uint64_t number)
        : owner_(owner), device_(on), recorder_(owner.observer(), on.index()), operations_(number),
          transfers_(owner, on, recorder_) {}

    [[nodiscard]] remote_device &device() { return device_; }

    status put(std::uint64_t address, const void *source, std::size_t nbytes);
    status get(void *destination, std::uint64_t address, std::size_t nbytes);
    /// Copies to another device's memory, or within this device's memory.
    status copy(world_rank to, std::uint64_t destination, std::uint64_t source, std::size_t nbytes);
    /// Copies between this device's slot and that of any device of the world, whose owner has
    /// checked the other range: operation::copy, from this device, or operation::pull, to it.
    status copy_in_job(operation op, world_rank other, std::uint64_t destination,
                       std::uint64_t source, std::size_t nbytes);
    status launch(const launch_arguments &arguments);
    /// A call of the host that the session's runtime makes, encoded for it. `outcome` is set when
    /// the queue has been waited for.
    status call(std::string_view encoded, std::span<char, call_outcome_bytes> outcome);
    /// Orders later operations of this queue after the event.
    status wait_for(const event &earlier);
    /// Returns an event for all operations that the queue has been given so far.
    [[nodiscard]] event record();

    static constexpr std::uint64_t all_batches = ~std::uint64_t{0};
    /// Blocks until all operations are complete, or those up to a batch are, for another queue that
    /// waits for it: any thread then. The queue is empty after all, and after an error, which the
    /// thread of this queue is also told.
    status synchronize(std::uint64_t up_to = all_batches);
    static constexpr std::chrono::microseconds default_polling_time{10};
    /// Makes progress without blocking; whether all operations are complete or deferred. Polls the
    /// network for a while, in handlers for 0 us.
    result<bool> test(std::chrono::microseconds polling_time = default_polling_time);
    /// Returns pages of the slot to the device's host: of a range that has just been freed, or all
    /// idle ones. A deferred operation that is ordered after all other deferred work.
    status release_pages(const std::optional<device_memory::range> &freed = {});
    /// Orders later operations after all deferred work of the device.
    status order_after_all_deferred();

    /// Sends the pending operations up to a batch, for another queue that waits for it; completes
    /// it if it has gets of the client, which sessions cannot wait for. False: the batch is
    /// complete already and the session may never receive it, so a wait operation for it must not
    /// be sent. Any thread.
    result<bool> send_up_to(std::uint64_t batch);

    /// Handles a reply. Any thread.
    void handle_reply(const batch_reply &reply);

private:
    using content = batch_builder::content;
    /// Steps of advance().
    enum class phase {
        batching, ///< operations are collected
        putting,  ///< waits for puts; the rest of the batch is sent after them
        running,  ///< waits for the reply
        printing, ///< waits until the output of the batch has been written
        getting,  ///< waits for gets
    };

    // The functions below are called with mutex_ held, unless marked otherwise.
    /// Sends the pending operations if a message has no space for `nbytes` more.
    status reserve_space(std::size_t nbytes, std::unique_lock<std::mutex> &lock);
    /// Orders later operations after the deferred work of other queues; with `include_own` also
    /// after this queue's, for operations that are not part of a batch. Unless the next operation
    /// is a get, waits for this queue's large gets first, which start after the reply to their
    /// batch.
    status order_after_deferred(std::unique_lock<std::mutex> &lock, bool include_own = false,
                                bool is_get = false);
    /// Appends a put (fetch) or get (deliver) that the session runs, between `client_memory` and
    /// the device.
    status append_zero_copy(operation op, std::uint64_t address, const void *client_memory,
                            std::size_t nbytes, std::unique_lock<std::mutex> &lock);
    /// Transfers `nbytes` in chunks: calls `transfer` with a stage buffer, the offset and the size
    /// of each. For variables of images, and for GPU memory that the network cannot access: large
    /// transfers reach the slot only. Synchronizes the queue if the slot has no space otherwise.
    template <typename Transfer>
    status stage_chunks(std::size_t nbytes, std::unique_lock<std::mutex> &lock, Transfer transfer);
    /// Sends the pending operations; `last` requests a reply.
    void transmit(bool last);
    void send(const std::string &message);
    /// Runs the next steps that need no waiting; true when all is complete, or deferred if allowed.
    result<bool> advance(bool may_defer = false);
    status consume_reply();
    /// Called without mutex_: waits until `ready`, which is called with it, returns true.
    template <typename Ready>
    status wait_until(Ready ready, const char *what);
    void reset();

    client &owner_;
    remote_device &device_;
    std::mutex mutex_; ///< not held across a wait; protects the rest except replies_
    phase phase_ = phase::batching;
    bool expects_reply_ = false; ///< after phase::batching: operations were sent
    queue_recorder recorder_;
    batch_builder operations_;
    network_transfers transfers_;
    std::array<std::uint64_t, 2> output_bytes_{}; ///< to be written before synchronize() returns
    /// Deferred work of the device that later operations are ordered after.
    std::uint64_t ordered_generation_ = 0;
    std::optional<error> failure_; ///< found by another thread, which waited for an event
    queue_replies replies_;
};

} // namespace diomp::offload::remote
