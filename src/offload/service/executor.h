// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs the batches of a session: the batches of one queue in order, those of different queues
// concurrently. The session's first thread polls for messages while it is idle, so that a region on
// an idle device needs no thread switch; helper threads are started when it is busy.
#pragma once

#include "offload/remote/protocol.h"
#include "offload/remote/world.h"
#include "offload/service/output.h"
#include "offload/service/peer_copies.h"
#include "offload/service/target.h"
#include "offload/service/zero_copy.h"
#include "transport/conduit.h"

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace diomp::offload::service {

/// Kernels that the session is running, in memory that the service can still read after the session
/// has crashed.
struct activity_table {
    static constexpr std::size_t num_entries = 64;
    struct entry {
        std::atomic<bool> is_busy{false};
        char kernel[240] = {};
    };
    std::array<entry, num_entries> entries;
    faulty_access fault;
    remote::frame_count sent; ///< to the client

    void begin(std::size_t thread, const std::string &kernel);
    void end(std::size_t thread);
    /// "kernel a, kernel b", or "" if no kernel runs.
    [[nodiscard]] std::string describe() const;
};

class executor {
public:
    executor(target &device, output &printed, activity_table &activities, double min_kernel_time_s)
        : device_(device), printed_(printed), activities_(activities),
          min_kernel_time_(min_kernel_time_s), peers_(device, moved_) {}
    ~executor();
    executor(const executor &) = delete;
    executor &operator=(const executor &) = delete;

    /// Active-message handler: adds a batch to its queue.
    void take(const transport::message &incoming);
    /// Body of the first thread; returns after stop(). `ranks` must outlive the call.
    void run(remote::world &ranks);
    /// Stops the threads without waiting for running operations. Any thread.
    void stop();
    [[nodiscard]] peer_copies &peers() { return peers_; }
    [[nodiscard]] const moved_bytes &moved() const { return moved_; }
    /// Times of all kernels that have run.
    [[nodiscard]] std::vector<remote::kernel_time> kernel_times();

private:
    struct batch {
        std::uint64_t number = 0;
        std::string operations;
    };
    struct entry {
        std::uint64_t number = 0;
        std::deque<batch> batches;
        std::uint64_t done = 0;    ///< number of the last complete batch
        bool is_scheduled = false; ///< owned by a thread, ready, or blocked
        std::size_t resume_at = 0; ///< offset in the first batch after a wait
        std::string failure;       ///< of the operations since the last reply; "": none
        std::string gets;          ///< bytes of gets for the next reply
        std::uint64_t kernel = 0;  ///< that took longest since the last reply
        std::chrono::microseconds kernel_time{0};
        zero_copy_transfers zero_copy; ///< in flight
    };
    /// A queue that waits for a batch of another one.
    struct blocked_queue {
        entry *waiter;
        std::uint64_t queue;
        std::uint64_t batch;
    };

    entry *pop_ready(); ///< called with mutex_ held
    void wake_helper(); ///< called with mutex_ held: a thread must look at ready_
    void run_queue(entry &queue, std::size_t thread);
    /// False: the queue is blocked.
    bool run_batch(entry &queue, batch &what, std::size_t thread);
    /// False: the rest of the batch cannot be parsed.
    bool run_operation(entry &queue, remote::operation what, packet_reader &packet,
                       std::size_t thread);
    void finish_zero_copy(entry &queue);
    bool wait_for(entry &queue, std::uint64_t other, std::uint64_t number);
    status get(entry &queue, std::uint64_t address, std::size_t nbytes);
    status start_zero_copy(entry &queue, remote::operation op,
                           const remote::zero_copy_transfer &what);
    status copy(world_rank to, std::uint64_t destination, std::uint64_t source, std::size_t nbytes);
    status copy_here(std::uint64_t destination, std::uint64_t source, std::size_t nbytes);
    status copy_to_slot(world_rank to, std::uint64_t destination, std::uint64_t source,
                        std::size_t nbytes);
    status launch(entry &queue, const remote::launch_arguments &launch, std::size_t thread);
    void record_time(std::uint64_t kernel, const std::string &name, std::chrono::nanoseconds taken);
    status release_pages(packet_reader &parts);
    void finish(entry &queue, std::uint64_t number);
    void complete_batch(entry &queue, std::uint64_t number);
    void start_helper();                 ///< called with mutex_ held
    void run_helper(std::size_t thread); ///< body of the other threads

    target &device_;
    output &printed_;
    activity_table &activities_;
    std::chrono::duration<double> min_kernel_time_;
    moved_bytes moved_;
    peer_copies peers_;
    std::atomic<remote::world *> ranks_{nullptr};
    std::atomic<bool> stopping_{false};
    std::mutex mutex_;
    std::condition_variable work_available_;
    std::unordered_map<std::uint64_t, std::unique_ptr<entry>> queues_;
    std::unordered_map<std::uint64_t, remote::kernel_time> kernel_times_; ///< [address]
    std::deque<entry *> ready_;
    std::vector<blocked_queue> blocked_;
    bool first_is_busy_ = false;
    std::size_t num_idle_ = 0;
    struct helper {
        std::thread thread;
        bool is_over = false;
    };
    std::vector<helper> helpers_; ///< [thread number - 1]
};

} // namespace diomp::offload::service
