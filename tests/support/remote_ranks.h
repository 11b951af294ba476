// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ranks as threads of one process that pretend to be on several nodes, with everything up to rma on
// top: for tests of transfers between ranks that do not map each other.
#pragma once

#include "memory/directory.h"
#include "memory/memory.h"
#include "messaging/call.h"
#include "messaging/engine.h"
#include "rma/atomics.h"
#include "rma/blocking_transfers.h"
#include "rma/box.h"
#include "rma/box_transfers.h"
#include "rma/event.h"
#include "rma/nonblocking_transfers.h"
#include "rma/options.h"
#include "rma/rma.h"
#include "rma/signals.h"
#include "support/delayed_conduit.h"
#include "support/lone_launcher.h"

#include <barrier>
#include <string>

namespace diomp::test {

/// The rooms up to rma of one rank.
struct remote_rank {
    remote_rank(const thread_arena &thread_memory, std::vector<std::unique_ptr<rank_queue>> &queues,
                const transport::arena &arena, world_rank self, int num_ranks,
                const delayed_network::traits &traits, const messaging::engine_options &options)
        : node(std::make_shared<delayed_node>(queues, self, traits)),
          conduit(make_conduit(thread_memory, self, num_ranks, node, traits.node_size)),
          engine(*conduit, options), calls(engine), segment(arena, self, local_rank{0}),
          directory(segment, engine, calls, self),
          space(self, arena, engine, segment, directory, false),
          transfers(space, segment, directory, engine, calls, {self, num_ranks, 0, {}}) {}

    std::shared_ptr<delayed_node> node;
    delayed_network &transport = *node->network();
    std::unique_ptr<diomp::transport::conduit> conduit;
    messaging::engine engine;
    messaging::call_service calls;
    memory::segment segment;
    memory::directory directory;
    memory::address_space space;
    rma::transfers transfers;
};

class remote_ranks {
public:
    explicit remote_ranks(int num_ranks, const delayed_network::traits &traits = {},
                          double timeout_s = 20)
        : launcher_(0, num_ranks, "test"), arena_(make_arena(launcher_)),
          thread_memory_(arena_->slot(world_rank{0}), num_ranks, arena_->slot_bytes()),
          together_(num_ranks) {
        map_other_slots(num_ranks);
        for (int rank = 0; rank < num_ranks; ++rank) {
            queues_.push_back(std::make_unique<rank_queue>());
        }
        messaging::engine_options const options{
            .spin_count = 20, .timeout_s = timeout_s, .warn_after_s = 100, .progress_thread = true};
        for (int rank = 0; rank < num_ranks; ++rank) {
            ranks_.push_back(std::make_unique<remote_rank>(
                thread_memory_, queues_, *arena_, world_rank{rank}, num_ranks, traits, options));
        }
        for (auto &each : ranks_) {
            each->engine.start();
        }
    }
    ~remote_ranks() {
        for (auto &each : ranks_) {
            each->engine.stop();
        }
    }
    remote_ranks(const remote_ranks &) = delete;
    remote_ranks &operator=(const remote_ranks &) = delete;

    [[nodiscard]] int size() const { return static_cast<int>(ranks_.size()); }
    [[nodiscard]] remote_rank &operator[](int rank) {
        return *ranks_[static_cast<std::size_t>(rank)];
    }
    [[nodiscard]] const transport::arena &arena() const { return *arena_; }

    /// Symmetric memory: the address at rank 0; see at().
    std::byte *allocate(std::size_t nbytes) {
        for (auto &each : ranks_) {
            offset_ = each->segment.allocate_symmetric(nbytes, 64).value();
        }
        return ranks_.front()->segment.base() + offset_;
    }
    /// The rank's copy.
    template <typename T>
    T *at(int rank, T *of_rank_0) const {
        return reinterpret_cast<T *>(reinterpret_cast<std::uintptr_t>(of_rank_0) +
                                     static_cast<std::size_t>(rank) * arena_->slot_bytes());
    }

    /// Calls body(rank) on a thread per rank and waits for all.
    void run(const std::function<void(int)> &body) {
        std::vector<std::thread> threads;
        for (int rank = 0; rank < size(); ++rank) {
            threads.emplace_back([&body, rank] { body(rank); });
        }
        for (std::thread &each : threads) {
            each.join();
        }
    }
    /// In run: all ranks.
    void meet() { together_.arrive_and_wait(); }

private:
    static std::unique_ptr<transport::arena> make_arena(launch::launcher &launcher) {
        // The test program is a world of its own, whose window lies at the default.
        std::uint64_t const base =
            transport::arena::default_base() + transport::arena::max_span() / 2 /
                                                   transport::arena::max_alignment *
                                                   transport::arena::max_alignment;
        auto made = transport::arena::create(
            launcher, {.base = base,
                       .usable_bytes = memory::internal_bytes + (std::size_t{32} << 20),
                       .control_bytes = 4096,
                       .one_slot_per_rank = true});
        if (!made) {
            throw std::runtime_error(made.failure().message());
        }
        return made.take();
    }
    /// The window has memory for rank 0 only: the others are elsewhere as a rule.
    void map_other_slots(int num_ranks) const {
        for (int rank = 1; rank < num_ranks; ++rank) {
            if (::mmap(
                    arena_->slot(world_rank{rank}), arena_->usable_bytes(), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED) {
                throw std::bad_alloc();
            }
        }
    }

    lone_launcher launcher_;
    std::unique_ptr<transport::arena> arena_;
    thread_arena thread_memory_;
    std::barrier<> together_;
    std::vector<std::unique_ptr<rank_queue>> queues_;
    std::vector<std::unique_ptr<remote_rank>> ranks_;
    std::uint64_t offset_ = 0;
};

} // namespace diomp::test
