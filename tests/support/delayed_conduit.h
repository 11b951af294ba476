// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A network that is as unkind as it may be: puts and gets happen late and in any order, in
// whichever thread polls; queues are full now and then.
#pragma once

#include "support/thread_ranks.h"

#include <algorithm>
#include <list>
#include <random>

namespace diomp::test {

/// Ranks on other "nodes" are reached by put and get only. As a network has, it has space for so
/// many transfers at a time: a thread that starts one more finishes others first.
class delayed_network final : public thread_network,
                              public transport::row_transfers,
                              public transport::network_atomics {
public:
    struct traits {
        int node_size = 1; ///< ranks next to each other that map each other
        std::size_t message_bytes = 240;
        unsigned seed = 1;
        bool sends_behind_puts = false; ///< has put_with_message, now and then
        bool takes_rows = false;        ///< has put_rows and get_rows
        bool has_atomics = false;       ///< that are atomic among themselves only
    };

    delayed_network(thread_node &messages, const traits &given, unsigned seed)
        : thread_network(messages), messages_(messages), traits_(given), random_(seed) {
        caps_.max_message_bytes = given.message_bytes;
        caps_.rows = this;
        caps_.atomics = given.has_atomics ? this : nullptr;
    }

    status atomic(world_rank, std::uint64_t remote, const diomp::transport::atomic_call &call,
                  void *result, diomp::transport::completion &) override {
        using diomp::transport::atomic_op;
        static std::mutex network; // what processors do meanwhile gets lost
        std::lock_guard const guard(network);
        auto *const word = reinterpret_cast<std::byte *>(remote);
        std::uint64_t old = 0;
        std::memcpy(&old, word, call.nbytes);
        std::uint64_t const next = call.op == atomic_op::add ? old + call.operand : call.operand;
        std::this_thread::yield();
        if (call.op != atomic_op::compare_exchange || old == call.expected) {
            std::memcpy(word, &next, call.nbytes);
        }
        if (result != nullptr) {
            std::memcpy(result, &old, call.nbytes);
        }
        return {};
    }

    status put(world_rank peer, std::uint64_t remote, const void *source, std::size_t nbytes,
               diomp::transport::completion &source_free) override {
        operation next{kind::put, peer, remote, nullptr, source, nbytes, nullptr, {}};
        if (nbytes <= 512) {
            auto const *bytes = static_cast<const std::byte *>(source);
            next.copied.assign(bytes, bytes + nbytes);
        } else {
            next.count = &source_free;
        }
        add(std::move(next));
        return {};
    }
    status get(world_rank peer, std::uint64_t remote, void *destination, std::size_t nbytes,
               diomp::transport::completion &done) override {
        add({kind::get, peer, remote, destination, nullptr, nbytes, &done, {}});
        return {};
    }
    result<bool> put_rows(world_rank peer, std::uint64_t remote, const void *source,
                          const diomp::transport::rows &shape,
                          diomp::transport::completion &source_free) override {
        return traits_.takes_rows &&
               for_each_row(
                   shape, remote, const_cast<void *>(source), shape.counts.size(),
                   [&](std::uint64_t there, std::byte *here) {
                       add({kind::put, peer, there, nullptr, here, shape.nbytes, &source_free, {}});
                   });
    }
    result<bool> get_rows(world_rank peer, std::uint64_t remote, void *destination,
                          const diomp::transport::rows &shape,
                          diomp::transport::completion &done) override {
        return traits_.takes_rows &&
               for_each_row(
                   shape, remote, destination, shape.counts.size(),
                   [&](std::uint64_t there, std::byte *here) {
                       add({kind::get, peer, there, here, nullptr, shape.nbytes, &done, {}});
                   });
    }
    [[nodiscard]] int num_boxes() const { return num_boxes_.load(); }
    status flush(world_rank peer, diomp::transport::completion &done) override {
        add({kind::flush, peer, 0, nullptr, nullptr, 0, &done, {}});
        return {};
    }
    status flush_all(diomp::transport::completion &done) override {
        return flush(world_rank{}, done);
    }

    result<bool> put_with_message(world_rank peer, std::uint64_t remote,
                                  std::span<const std::byte> source,
                                  diomp::transport::handler_id handler,
                                  std::span<const std::byte> payload,
                                  diomp::transport::completion &source_free) override {
        {
            std::lock_guard const guard(mutex_);
            if (!traits_.sends_behind_puts || held_ || random_() % 4 == 0) {
                return false;
            }
        }
        add({kind::put,
             peer,
             remote,
             nullptr,
             source.data(),
             source.size(),
             &source_free,
             {},
             [this, peer, handler, message = std::vector(payload.begin(), payload.end())] {
                 [[maybe_unused]] bool const sent =
                     messages_.thread_node::try_send(peer, handler, message);
             }});
        num_sent_behind_.fetch_add(1);
        return true;
    }
    /// Finishes operations until it stops at random; returns their number.
    int finish_some() {
        int done = 0;
        while (finish_one()) {
            ++done;
        }
        return done;
    }
    [[nodiscard]] bool has_operations() {
        std::lock_guard const guard(mutex_);
        return !operations_.empty();
    }
    /// Whether a queue is full now.
    [[nodiscard]] bool refuses_message() {
        std::lock_guard const guard(mutex_);
        return held_ || random_() % 8 == 0;
    }

    /// While held, nothing leaves this rank.
    void hold(bool held) {
        std::lock_guard const guard(mutex_);
        held_ = held;
    }
    [[nodiscard]] int num_sent_behind() const { return num_sent_behind_.load(); }
    /// From now on transfers to and from the peer fail.
    void lose(world_rank peer) {
        std::lock_guard const guard(mutex_);
        lost_ = peer;
    }

private:
    /// Counts one box for each time that all levels are given.
    template <typename F>
    bool for_each_row(const diomp::transport::rows &shape, std::uint64_t remote, void *local,
                      std::size_t num_levels, F &&f) {
        if (num_levels == 0) {
            f(remote, static_cast<std::byte *>(local));
            return true;
        }
        num_boxes_ += num_levels == shape.counts.size() ? 1 : 0;
        std::size_t const level = num_levels - 1;
        for (std::size_t i = 0; i < shape.counts[level]; ++i) {
            auto const step = static_cast<std::ptrdiff_t>(i);
            for_each_row(
                shape, remote + static_cast<std::uint64_t>(step * shape.remote_strides[level]),
                static_cast<std::byte *>(local) + step * shape.local_strides[level], level, f);
        }
        return true;
    }

    enum class kind { put, get, flush };
    struct operation {
        kind what;
        world_rank peer; ///< none: flush_all
        std::uint64_t remote;
        void *destination;
        const void *source;
        std::size_t nbytes;
        diomp::transport::completion *count;
        std::vector<std::byte> copied;
        std::function<void()> then{}; ///< called when the bytes have moved
    };

    /// Without a bound a thread that starts transfers while another one, which has the turn to
    /// poll, is off its core gets so far ahead that the rest of the test is spent in this list.
    static constexpr std::size_t most_under_way = 256;

    void make_room() {
        for (;;) {
            {
                std::lock_guard const guard(mutex_);
                if (held_ || operations_.size() < most_under_way) {
                    return;
                }
            }
            finish_one();
        }
    }

    void add(operation next) {
        make_room();
        std::lock_guard const guard(mutex_);
        if (next.count != nullptr) {
            next.count->begin();
        }
        operations_.push_back(std::move(next));
    }

    /// A flush has to wait for the puts before it, everything else may overtake.
    bool may_finish(std::list<operation>::iterator candidate) {
        return candidate->what != kind::flush ||
               std::none_of(operations_.begin(), candidate, [&](const operation &earlier) {
                   return earlier.what == kind::put &&
                          (candidate->peer == world_rank{} || earlier.peer == candidate->peer);
               });
    }

    bool finish_one() {
        std::lock_guard const guard(mutex_);
        if (held_ || operations_.empty() || random_() % 3 == 0) {
            return false;
        }
        auto chosen = std::next(operations_.begin(),
                                static_cast<std::ptrdiff_t>(random_() % operations_.size()));
        if (!may_finish(chosen)) {
            return false;
        }
        bool const lost = chosen->peer == lost_ && lost_ != world_rank{};
        if (!lost) {
            move(*chosen);
            if (chosen->then) {
                chosen->then();
            }
        }
        if (chosen->count != nullptr) {
            chosen->count->end(lost ? OMPX_ERR_PEER : 0);
        }
        operations_.erase(chosen);
        return true;
    }

    static void move(const operation &each) {
        auto *const there = reinterpret_cast<std::byte *>(each.remote);
        if (each.what == kind::put) {
            std::memcpy(there, each.copied.empty() ? each.source : each.copied.data(), each.nbytes);
        } else if (each.what == kind::get) {
            std::memcpy(each.destination, there, each.nbytes);
        }
    }

    thread_node &messages_;
    traits traits_;
    std::mutex mutex_; ///< over the rest
    std::mt19937 random_;
    std::list<operation> operations_;
    bool held_ = false;
    world_rank lost_;
    std::atomic<int> num_sent_behind_{0};
    std::atomic<int> num_boxes_{0};
};

/// The messages of a rank with a delayed network.
class delayed_node final : public thread_node {
public:
    delayed_node(std::vector<std::unique_ptr<rank_queue>> &queues, world_rank self,
                 const delayed_network::traits &given)
        : thread_node(queues, self),
          network_(std::make_shared<delayed_network>(
              *this, given, given.seed * 1000 + static_cast<unsigned>(self.value()))) {
        caps_.max_message_bytes = given.message_bytes;
    }
    [[nodiscard]] const std::shared_ptr<delayed_network> &network() const { return network_; }

    bool try_send(world_rank peer, diomp::transport::handler_id handler,
                  std::span<const std::byte> payload) override {
        return !network_->refuses_message() && thread_node::try_send(peer, handler, payload);
    }
    int poll(diomp::transport::message_handler sink) override {
        // One thread at a time, else messages would overtake each other.
        std::unique_lock const turn(polling_, std::try_to_lock);
        if (!turn.owns_lock()) {
            return 0;
        }
        int const done = network_->finish_some();
        return done + thread_node::poll(sink);
    }
    void sleep(std::uint32_t seen, std::chrono::microseconds limit) override {
        thread_node::sleep(seen, network_->has_operations()
                                     ? std::min(limit, std::chrono::microseconds(50))
                                     : limit);
    }

private:
    std::mutex polling_;
    std::shared_ptr<delayed_network> network_;
};

/// The conduit of a rank whose peers are on "nodes" of `given.node_size` ranks.
inline std::unique_ptr<transport::conduit> make_conduit(const thread_arena &arena, world_rank self,
                                                        int num_ranks,
                                                        std::shared_ptr<delayed_node> node,
                                                        int node_size) {
    lazy_array<std::byte *> direct_bases(static_cast<std::size_t>(num_ranks));
    for (int peer = 0; peer < num_ranks; ++peer) {
        if (peer / node_size == self.value() / node_size) {
            direct_bases[static_cast<std::size_t>(peer)] = arena.slot(world_rank{peer});
        }
    }
    auto network = node->network();
    return std::make_unique<transport::conduit>(self, std::move(node), std::move(network),
                                                std::move(direct_bases));
}

} // namespace diomp::test
