// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs the batches of a session: those of one queue in order, those of different queues side by
// side. One thread, the session's first, looks for messages itself while it has nothing to do, so
// that a region on an idle device costs no change of threads; others come when it is busy.
#pragma once

#include "conduit/conduit.h"
#include "offload/remote/protocol.h"
#include "offload/remote/world.h"
#include "offload/service/output.h"
#include "offload/service/peer_copies.h"
#include "offload/service/straight.h"
#include "offload/service/target.h"

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

/// What the session does right now, where the service still sees it when the session has crashed.
struct activity_board {
    static constexpr std::size_t num_lines = 64;
    struct line {
        std::atomic<bool> is_busy{false};
        char kernel[240] = {};
    };
    std::array<line, num_lines> lines;
    faulty_access fault;
    remote::frame_count sent; ///< to the client

    void begin(std::size_t thread, const std::string &kernel);
    void end(std::size_t thread);
    /// "kernel a, kernel b", or "" if nothing ran.
    [[nodiscard]] std::string describe() const;
};

class executor {
public:
    executor(target &device, output &printed, activity_board &board, double least_kernel_time_s)
        : device_(device), printed_(printed), board_(board),
          least_kernel_time_(least_kernel_time_s), peers_(device, moved_) {}
    ~executor();
    executor(const executor &) = delete;
    executor &operator=(const executor &) = delete;

    /// The world's handler.
    void take(const conduit::message &incoming);
    /// Body of the first thread, until stop(). `ranks` must not end before.
    void run(remote::world &ranks);
    /// Any thread. What is under way is not waited for.
    void stop();
    [[nodiscard]] peer_copies &peers() { return peers_; }
    [[nodiscard]] const moved_bytes &moved() const { return moved_; }
    /// Of all kernels that have run.
    [[nodiscard]] std::vector<remote::kernel_time> kernel_times();

private:
    struct batch {
        std::uint64_t number = 0;
        std::string operations;
    };
    struct line {
        std::uint64_t number = 0;
        std::deque<batch> batches;
        std::uint64_t done = 0;    ///< number of the last batch that is
        bool is_taken = false;     ///< by a thread, or ready, or parked
        std::size_t resume_at = 0; ///< of the first batch, after a wait
        std::string failure;       ///< of the operations since the last reply
        std::string gets;          ///< the bytes for it
        std::uint64_t kernel = 0;  ///< that took longest since then
        std::chrono::microseconds kernel_time{0};
        straight_transfers straight; ///< under way
    };
    /// A queue that waits for a batch of another one.
    struct parked {
        line *who;
        std::uint64_t queue;
        std::uint64_t batch;
    };

    line *take_ready();   ///< with mutex_
    void call_for_help(); ///< with mutex_: somebody shall look at ready_
    void work_on(line &queue, std::size_t thread);
    /// False: the queue has to wait.
    bool run_batch(line &queue, batch &what, std::size_t thread);
    /// False: the rest of the batch cannot be understood.
    bool run_operation(line &queue, remote::operation what, packet_reader &packet,
                       std::size_t thread);
    void end_straight(line &queue);
    bool wait_for(line &queue, std::uint64_t other, std::uint64_t number);
    status get(line &queue, std::uint64_t address, std::size_t nbytes);
    status move_straight(line &queue, remote::operation way, const remote::straight_transfer &what);
    status copy(world_rank to, std::uint64_t destination, std::uint64_t source, std::size_t nbytes);
    status copy_here(std::uint64_t destination, std::uint64_t source, std::size_t nbytes);
    status copy_to_slot(world_rank to, std::uint64_t destination, std::uint64_t source,
                        std::size_t nbytes);
    status launch(line &queue, const remote::launch_arguments &launch, std::size_t thread);
    void note_time(std::uint64_t kernel, const std::string &name, std::chrono::nanoseconds taken);
    status drop(packet_reader &parts);
    void finish(line &queue, std::uint64_t number);
    void settle(line &queue, std::uint64_t number);
    void start_helper();           ///< with mutex_
    void help(std::size_t thread); ///< body of the other threads

    target &device_;
    output &printed_;
    activity_board &board_;
    std::chrono::duration<double> least_kernel_time_;
    moved_bytes moved_;
    peer_copies peers_;
    std::atomic<remote::world *> ranks_{nullptr};
    std::atomic<bool> stopping_{false};
    std::mutex mutex_;
    std::condition_variable ready_again_;
    std::unordered_map<std::uint64_t, std::unique_ptr<line>> lines_;
    std::unordered_map<std::uint64_t, remote::kernel_time> kernel_times_; ///< [address]
    std::deque<line *> ready_;
    std::vector<parked> parked_;
    bool first_is_busy_ = false;
    std::size_t num_idle_ = 0;
    struct helper {
        std::thread thread;
        bool is_over = false;
    };
    std::vector<helper> helpers_; ///< [its number - 1]
};

} // namespace diomp::offload::service
