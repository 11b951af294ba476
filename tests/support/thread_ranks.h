// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ranks as threads of one process: an arena cut into slots that all of them load and store, and a
// conduit that passes messages through a mutex. For unit tests of what is built on the conduit,
// also under the thread sanitizer.
#pragma once

#include "messaging/engine.h"
#include "transport/conduit.h"

#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <sys/mman.h>
#include <thread>
#include <vector>

namespace diomp::test {

/// Zeroed pages, which later tests get again: the shadow of new pages costs the thread sanitizer a
/// fault and an interrupt of all processors per page.
class kept_pages {
public:
    explicit kept_pages(std::size_t nbytes) : nbytes_(nbytes) {
        std::lock_guard const guard(mutex());
        auto &known = kept()[nbytes];
        if (!known.empty()) {
            base_ = known.back();
            known.pop_back();
            return;
        }
        void *const mapped = ::mmap(nullptr, nbytes, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (mapped == MAP_FAILED) {
            throw std::bad_alloc();
        }
        base_ = static_cast<std::byte *>(mapped);
    }
    ~kept_pages() {
        ::madvise(base_, nbytes_, MADV_DONTNEED);
        std::lock_guard const guard(mutex());
        kept()[nbytes_].push_back(base_);
    }
    kept_pages(const kept_pages &) = delete;
    kept_pages &operator=(const kept_pages &) = delete;

    [[nodiscard]] std::byte *base() const { return base_; }

private:
    static std::mutex &mutex() {
        static std::mutex shared;
        return shared;
    }
    static std::map<std::size_t, std::vector<std::byte *>> &kept() {
        static std::map<std::size_t, std::vector<std::byte *>> shared;
        return shared;
    }

    std::size_t nbytes_;
    std::byte *base_ = nullptr;
};

class thread_arena {
public:
    thread_arena(int num_ranks, std::size_t slot_bytes)
        : slot_bytes_(slot_bytes), span_(slot_bytes * static_cast<std::size_t>(num_ranks)),
          pages_(std::make_unique<kept_pages>(span_)), base_(pages_->base()) {}
    /// Of memory that somebody else maps and keeps.
    thread_arena(std::byte *base, int num_ranks, std::size_t slot_bytes)
        : slot_bytes_(slot_bytes), span_(slot_bytes * static_cast<std::size_t>(num_ranks)),
          base_(base) {}

    [[nodiscard]] std::byte *slot(world_rank rank) const {
        return base_ + rank.index() * slot_bytes_;
    }
    [[nodiscard]] std::byte *base() const { return base_; }
    [[nodiscard]] std::size_t span() const { return span_; }
    [[nodiscard]] std::size_t slot_bytes() const { return slot_bytes_; }

private:
    std::size_t slot_bytes_;
    std::size_t span_;
    std::unique_ptr<kept_pages> pages_;
    std::byte *base_;
};

/// What the threads' conduits share.
struct rank_queue {
    struct queued_message {
        world_rank source;
        transport::handler_id handler;
        std::vector<std::byte> payload;
    };
    std::mutex mutex;
    std::condition_variable rung;
    std::deque<queued_message> queue;
    std::atomic<std::size_t> num_queued{0}; ///< polls that find none lock nothing
    std::atomic<std::uint32_t> activity{0};
    std::atomic<bool> has_unwoken_waiter{false};      ///< that waits for a store
    std::atomic<std::uint32_t> all_store_sleepers{0}; ///< of all ranks, in the queue of rank 0

    void add(queued_message &&next) {
        {
            std::lock_guard const guard(mutex);
            queue.push_back(std::move(next));
            num_queued.fetch_add(1);
            activity.fetch_add(1);
        }
        rung.notify_all();
    }
    void ring() {
        {
            std::lock_guard const guard(mutex);
            activity.fetch_add(1);
        }
        rung.notify_all();
    }
};

/// Messages by a queue per rank; a rank sleeps at its own.
class thread_node : public transport::node_transport {
public:
    thread_node(std::vector<std::unique_ptr<rank_queue>> &queues, world_rank self)
        : queues_(queues), self_(self) {
        caps_ = {"thread", 240, &queues_[0]->all_store_sleepers};
    }

    bool try_send(world_rank peer, diomp::transport::handler_id handler,
                  std::span<const std::byte> payload) override {
        queues_[peer.index()]->add({self_, handler, {payload.begin(), payload.end()}});
        return true;
    }
    int poll(diomp::transport::message_handler sink) override {
        rank_queue &own = *queues_[self_.index()];
        int handled = 0;
        for (; own.num_queued.load() > 0; ++handled) {
            rank_queue::queued_message next;
            {
                std::lock_guard const guard(own.mutex);
                if (own.queue.empty()) {
                    return handled;
                }
                next = std::move(own.queue.front());
                own.queue.pop_front();
                own.num_queued.fetch_sub(1);
            }
            sink({next.source, next.handler, next.payload, {}});
        }
        return handled;
    }
    bool has_messages() const override { return false; }

    std::uint32_t activity() const override { return queues_[self_.index()]->activity.load(); }
    void sleep(std::uint32_t seen, std::chrono::microseconds limit) override {
        rank_queue &own = *queues_[self_.index()];
        std::unique_lock guard(own.mutex);
        own.rung.wait_for(guard, limit, [&own, seen] { return own.activity.load() != seen; });
    }
    void wake() override { queues_[self_.index()]->ring(); }
    void begin_polling() override {}
    bool end_polling() override { return false; }
    bool idle_wait(diomp::transport::wait_kind what, std::uint32_t seen,
                   std::chrono::microseconds limit, function_ref<bool()> ready) override {
        std::uint32_t const for_store = what == diomp::transport::wait_kind::store ? 1 : 0;
        std::atomic<std::uint32_t> &sleepers = queues_[0]->all_store_sleepers;
        sleepers.fetch_add(for_store);
        queues_[self_.index()]->has_unwoken_waiter.store(true);
        bool const is_ready = ready();
        if (!is_ready) {
            sleep(seen, limit);
        }
        sleepers.fetch_sub(for_store);
        return is_ready;
    }
    void wake_idle_waiters() override { wake(); }
    void wake_for_store(world_rank peer) override {
        if (rank_queue &target = *queues_[peer.index()];
            target.has_unwoken_waiter.exchange(false)) {
            target.ring();
        }
    }

    // The ranks are threads, so each can load and store the others' private memory.
    status write_private(world_rank, std::uint64_t to, const void *from,
                         std::size_t nbytes) override {
        num_private_copies += nbytes > 1 ? 1 : 0;
        std::memcpy(reinterpret_cast<void *>(to), from, nbytes);
        return {};
    }
    status read_private(world_rank, std::uint64_t from, void *to, std::size_t nbytes) override {
        num_private_copies += nbytes > 1 ? 1 : 0;
        std::memcpy(to, reinterpret_cast<const void *>(from), nbytes);
        return {};
    }
    static inline std::atomic<int> num_private_copies{0}; ///< of all ranks; without probes

private:
    std::vector<std::unique_ptr<rank_queue>> &queues_;
    world_rank self_;
};

/// Ranks of other nodes are threads too: puts and gets are copies, messages go the node's way.
class thread_network : public transport::network {
public:
    explicit thread_network(thread_node &messages) : messages_(messages) {
        caps_.name = "threads";
        caps_.max_message_bytes = messages.caps().max_message_bytes;
    }

    status put(world_rank, std::uint64_t remote_address, const void *source, std::size_t nbytes,
               diomp::transport::completion &) override {
        std::memcpy(reinterpret_cast<void *>(remote_address), source, nbytes);
        return {};
    }
    status get(world_rank, std::uint64_t remote_address, void *destination, std::size_t nbytes,
               diomp::transport::completion &) override {
        std::memcpy(destination, reinterpret_cast<const void *>(remote_address), nbytes);
        return {};
    }
    status flush(world_rank, diomp::transport::completion &) override { return {}; }
    status flush_all(diomp::transport::completion &) override { return {}; }

    bool try_send(world_rank peer, diomp::transport::handler_id handler,
                  std::span<const std::byte> payload) override {
        return messages_.try_send(peer, handler, payload);
    }
    int poll(diomp::transport::message_handler /*sink*/) override { return 0; }
    bool has_messages() const override { return false; }
    result<bool> send_long(world_rank, diomp::transport::handler_id, std::span<const std::byte>,
                           std::span<const std::byte>, diomp::transport::completion &) override {
        return false;
    }
    result<bool> put_with_message(world_rank, std::uint64_t, std::span<const std::byte>,
                                  diomp::transport::handler_id, std::span<const std::byte>,
                                  diomp::transport::completion &) override {
        return false;
    }
    void set_am_long_handler(const diomp::transport::am_long_handler &,
                             const diomp::transport::recv_buffer_callback &) override {}
    void revoke_recv_buffer(const std::byte *) override {}

    void begin_polling() override {}
    void end_polling() override {}
    bool idle_wait(std::chrono::microseconds, function_ref<bool()>) override { return false; }
    void wake_idle_waiters() override {}

    void report_failures_to(const diomp::transport::failure_handler &) override {}
    std::string describe_path(world_rank) const override { return "threads"; }
    std::string describe_outstanding() const override { return {}; }
    status close() override { return {}; }
    void freeze() override {}

private:
    thread_node &messages_;
};

/// Conduit and engine of each rank, and threads to run as them.
class thread_ranks {
public:
    explicit thread_ranks(int num_ranks, std::size_t slot_bytes = std::size_t{1} << 20,
                          const messaging::engine_options &options = {.spin_count = 20,
                                                                      .timeout_s = 20,
                                                                      .warn_after_s = 10,
                                                                      .progress_thread = false})
        : arena_(num_ranks, slot_bytes), options_(options) {
        for (int rank = 0; rank < num_ranks; ++rank) {
            queues_.push_back(std::make_unique<rank_queue>());
        }
        place_on_nodes({});
    }

    /// [world rank] the node that it pretends to be on; empty: all on one. Makes new engines: call
    /// before they have handlers.
    void place_on_nodes(const std::vector<std::int32_t> &node_of) {
        engines_.clear();
        conduits_.clear();
        for (std::size_t self = 0; self < queues_.size(); ++self) {
            lazy_array<std::byte *> direct_bases(queues_.size());
            for (std::size_t peer = 0; peer < queues_.size(); ++peer) {
                if (node_of.empty() || node_of[peer] == node_of[self]) {
                    direct_bases[peer] = arena_.slot(world_rank{static_cast<int>(peer)});
                }
            }
            world_rank const rank{static_cast<int>(self)};
            auto node = std::make_shared<thread_node>(queues_, rank);
            auto network = std::make_shared<thread_network>(*node);
            conduits_.push_back(std::make_unique<diomp::transport::conduit>(
                rank, std::move(node), std::move(network), std::move(direct_bases)));
            engines_.push_back(std::make_unique<messaging::engine>(*conduits_.back(), options_));
        }
    }

    [[nodiscard]] int size() const { return static_cast<int>(engines_.size()); }
    [[nodiscard]] const thread_arena &arena() const { return arena_; }
    [[nodiscard]] messaging::engine &engine(world_rank rank) { return *engines_[rank.index()]; }

    /// Calls body(rank) on a thread per rank and waits for all.
    void run(const std::function<void(world_rank)> &body) {
        std::vector<std::thread> threads;
        threads.reserve(engines_.size());
        for (int rank = 0; rank < size(); ++rank) {
            threads.emplace_back([&body, rank] { body(world_rank{rank}); });
        }
        for (std::thread &each : threads) {
            each.join();
        }
    }

private:
    thread_arena arena_;
    messaging::engine_options options_;
    std::vector<std::unique_ptr<rank_queue>> queues_;
    std::vector<std::unique_ptr<diomp::transport::conduit>> conduits_;
    std::vector<std::unique_ptr<messaging::engine>> engines_;
};

} // namespace diomp::test
