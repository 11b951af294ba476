// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "conduit/ucx/ucx.h"

#include "base/log.h"
#include "conduit/backoff.h"
#include "conduit/network_frame.h"
#include "conduit/ucx/traffic.h"

#include <cstring>

namespace diomp::conduit::ucx {
namespace {

status status_of(result<bool> outcome) {
    if (!outcome) {
        return outcome.take_failure();
    }
    return {};
}

class ucx_network final : public network_frame {
public:
    ucx_network(launch::launcher &launcher, const conduit_options &options, doorbell ring)
        : network_frame(launcher, options, std::move(ring)) {}
    ~ucx_network() override { stop_thread(); }
    ucx_network(const ucx_network &) = delete;
    ucx_network &operator=(const ucx_network &) = delete;

    status start(const window &window, const conduit_options &options);

    const char *name() const override { return "ucx"; }
    status put(world_rank rank, std::uint64_t remote_address, const void *source,
               std::size_t nbytes, completion &source_free) override;
    status get(world_rank rank, std::uint64_t remote_address, void *destination, std::size_t nbytes,
               completion &done) override;
    bool reaches(memory_kind kind) const override { return traffic_->process().reaches(kind); }
    bool works_between() const override { return true; }
    status put_between(world_rank rank, std::uint64_t remote_address, const void *source,
                       std::size_t nbytes, memory_ends ends, completion &source_free) override;
    status get_between(world_rank rank, std::uint64_t remote_address, void *destination,
                       std::size_t nbytes, memory_ends ends, completion &done) override;
    void work_in(const device_scope &scope) override {
        traffic_->process().scopes().work_in(scope);
    }
    bool has_atomics() const override { return traffic_->process().options().native_atomics; }
    status atomic(world_rank rank, std::uint64_t remote_address, const atomic_call &call,
                  void *result, completion &done) override;
    status flush(world_rank rank, completion &done) override;
    status flush_all(completion &done) override;
    std::size_t max_message_bytes() const override { return message_bytes; }
    bool try_send(world_rank rank, handler_id handler, std::span<const std::byte> payload) override;
    result<bool> send_bulk(world_rank rank, handler_id handler, std::span<const std::byte> payload,
                           std::span<const std::byte> data, completion &source_free) override;
    int poll(message_sink sink) override { return hand_over(traffic_->advance(), sink); }
    std::string describe_path(world_rank rank) const override;
    void freeze() override { traffic_->freeze(); }

private:
    bool serve() override { return traffic_->advance(true); }
    bool arm() override { return traffic_->arm(); }
    void ping(network_peer &silent) override { traffic_->ping(static_cast<peer &>(silent)); }
    std::vector<network_peer *> known_peers() const override {
        return pointers_to(traffic_->spoken_to());
    }
    std::string fail(network_peer &lost, const std::string &why) override {
        return traffic_->fail(static_cast<peer &>(lost), why);
    }
    void note_handled(const message &each) override;
    status drain() override;

    /// A channel with room, and the lock of its worker.
    struct locked_channel {
        std::unique_lock<std::mutex> lock;
        channel *to;
    };
    result<locked_channel> find_room(peer &target, worker &owner);
    /// Also waits until there are not too many gets.
    result<locked_channel> find_room_for_get(peer &target);
    static void ask_for(channel &from, std::uint64_t remote_address, void *destination,
                        std::size_t nbytes, memory_ends ends, completion &done);
    /// False if there is nothing to wait for.
    static result<bool> flush_channel(channel &to, completion &done, bool also_messages);

    std::unique_ptr<traffic> traffic_;
};

status ucx_network::start(const window &window, const conduit_options &options) {
    auto made = traffic::create(launcher(), window, options, arrived(),
                                [this](peer &lost, const std::string &why) { lose(lost, why); });
    DIOMP_TRY(made);
    traffic_ = made.take();
    return start_thread(traffic_->event_fd());
}

result<ucx_network::locked_channel> ucx_network::find_room(peer &target, worker &owner) {
    locked_channel found{std::unique_lock(owner.mutex), nullptr};
    backoff idle;
    for (;;) {
        if (target.is_failed()) {
            return target.gone().take_failure();
        }
        auto connected = target.channel_of(owner);
        DIOMP_TRY(connected);
        found.to = connected.value();
        if (!found.to->is_full()) [[likely]] {
            return found;
        }
        found.lock.unlock();
        if (traffic_->advance()) {
            idle.reset();
        } else {
            idle.pause();
        }
        found.lock.lock();
    }
}

status ucx_network::put(world_rank rank, std::uint64_t remote_address, const void *source,
                        std::size_t nbytes, completion &source_free) {
    if (nbytes == 0) {
        return {};
    }
    {
        auto found = find_room(traffic_->peer_of(rank), traffic_->own_worker());
        DIOMP_TRY(found);
        channel &to = *found.value().to;
        to.list_unsettled();
        if (to.has_rdma) {
            to.rdma_put(remote_address, source, nbytes, source_free);
        } else {
            to.bytes_in_epoch += nbytes;
            to.has_news = true;
            if (nbytes <= small_bytes) {
                ++to.puts_in_epoch;
                std::memcpy(to.append(record_kind::put, remote_address, nbytes), source, nbytes);
            } else {
                to.puts_in_epoch +=
                    to.send_bulk(record_kind::put, remote_address, source, nbytes, &source_free);
            }
        }
    }
    nudge();
    return {};
}

status ucx_network::get(world_rank rank, std::uint64_t remote_address, void *destination,
                        std::size_t nbytes, completion &done) {
    if (nbytes == 0) {
        return {};
    }
    peer &target = traffic_->peer_of(rank);
    auto found = find_room_for_get(target);
    DIOMP_TRY(found);
    channel &to = *found.value().to;
    if (to.has_rdma) {
        to.rdma_get(remote_address, destination, nbytes, done);
    } else {
        ask_for(to, remote_address, destination, nbytes, {}, done);
    }
    found.value().lock.unlock();
    nudge();
    return {};
}

result<ucx_network::locked_channel> ucx_network::find_room_for_get(peer &target) {
    advance_until([&] { return !target.has_many_gets() || target.is_failed(); },
                  [&] { return traffic_->advance(); });
    return find_room(target, traffic_->own_worker());
}

void ucx_network::ask_for(channel &from, std::uint64_t remote_address, void *destination,
                          std::size_t nbytes, memory_ends ends, completion &done) {
    get_body const body{nbytes, from.target.add_get(destination, nbytes, ends.local, done)};
    std::memcpy(from.append(record_kind::get, remote_address, sizeof(body), 0, to_byte(ends)),
                &body, sizeof(body));
    from.ship_soon();
}

status ucx_network::put_between(world_rank rank, std::uint64_t remote_address, const void *source,
                                std::size_t nbytes, memory_ends ends, completion &source_free) {
    if (nbytes == 0) {
        return {};
    }
    {
        auto const devices = traffic_->process().scopes().enter();
        auto found = find_room(traffic_->peer_of(rank), traffic_->own_worker());
        DIOMP_TRY(found);
        channel &to = *found.value().to;
        to.list_unsettled();
        to.bytes_in_epoch += nbytes;
        to.has_news = true;
        to.puts_in_epoch +=
            to.send_bulk(record_kind::put, remote_address, source, nbytes, &source_free, ends);
    }
    nudge();
    return {};
}

status ucx_network::get_between(world_rank rank, std::uint64_t remote_address, void *destination,
                                std::size_t nbytes, memory_ends ends, completion &done) {
    if (nbytes == 0) {
        return {};
    }
    auto found = find_room_for_get(traffic_->peer_of(rank));
    DIOMP_TRY(found);
    ask_for(*found.value().to, remote_address, destination, nbytes, ends, done);
    found.value().lock.unlock();
    nudge();
    return {};
}

status ucx_network::atomic(world_rank rank, std::uint64_t remote_address, const atomic_call &call,
                           void *result, completion &done) {
    {
        auto found = find_room(traffic_->peer_of(rank), traffic_->own_worker());
        DIOMP_TRY(found);
        channel &to = *found.value().to;
        if (to.remote_key == nullptr) {
            return error(OMPX_ERR_UNSUPPORTED,
                         to.target.name() + " is not reached by UCX's atomic operations (" +
                             to.target.path() + ")",
                         "set DIOMP_NETWORK_ATOMICS=messages");
        }
        if (result == nullptr) {
            to.list_unsettled();
        }
        to.rdma_atomic(remote_address, call, result, done);
    }
    nudge();
    return {};
}

result<bool> ucx_network::flush_channel(channel &to, completion &done, bool also_messages) {
    if (to.target.is_failed()) {
        return to.target.gone().take_failure();
    }
    bool const has_rdma = to.rdma_flush(done);
    if (to.puts_in_epoch == 0 && !(also_messages && to.has_news)) {
        return to.target.join_flush(to.owner.index, done) || has_rdma;
    }
    to.target.add_flush(to, done);
    to.append(record_kind::flush, to.puts_in_epoch, 0);
    ++to.epoch;
    to.puts_in_epoch = 0;
    to.bytes_in_epoch = 0;
    to.has_news = false;
    to.ship();
    return true;
}

status ucx_network::flush(world_rank rank, completion &done) {
    peer *const target = traffic_->find_peer(rank);
    if (target == nullptr) {
        return {};
    }
    status outcome;
    traffic_->for_each_worker([&](worker &owner) {
        std::lock_guard const guard(owner.mutex);
        if (channel *const to = target->find_channel(owner); to != nullptr && outcome.ok()) {
            outcome = status_of(flush_channel(*to, done, false));
        }
    });
    nudge();
    return outcome;
}

status ucx_network::flush_all(completion &done) {
    // Costs as much as there are channels with puts since they were last found without.
    status outcome;
    bool is_nudge_due = false;
    traffic_->for_each_worker([&](worker &owner) {
        std::lock_guard const guard(owner.mutex);
        is_nudge_due = is_nudge_due || !owner.unsettled.empty();
        std::erase_if(owner.unsettled, [&](channel *each) {
            if (!outcome.ok()) {
                return false;
            }
            auto waiting = flush_channel(*each, done, false);
            if (!waiting) {
                outcome = waiting.take_failure();
                return false;
            }
            each->is_unsettled = waiting.value();
            return !waiting.value();
        });
    });
    if (is_nudge_due) {
        nudge();
    }
    return outcome;
}

bool ucx_network::try_send(world_rank rank, handler_id handler,
                           std::span<const std::byte> payload) {
    peer &target = traffic_->peer_of(rank);
    if (target.is_failed()) {
        return true; // nobody is there to miss it; whoever waits for an answer is told
    }
    if (!target.take_room(payload.size())) {
        return false;
    }
    {
        // One worker for all messages: the runtime may hand a thread's message to another thread.
        worker &owner = traffic_->first_worker();
        std::lock_guard const guard(owner.mutex);
        auto connected = target.channel_of(owner);
        if (!connected) {
            log(log_level::error, "{}", connected.failure().message());
            traffic::mark_broken(owner, target);
            return true;
        }
        channel &to = *connected.value();
        if (to.is_full()) {
            target.free_room(message_cost(payload.size()));
            return false;
        }
        std::byte *const at =
            to.append(record_kind::message, to.next_message++, payload.size(), handler);
        if (!payload.empty()) {
            std::memcpy(at, payload.data(), payload.size());
        }
        to.has_news = true;
        to.ship_soon();
    }
    nudge();
    return true;
}

result<bool> ucx_network::send_bulk(world_rank rank, handler_id handler,
                                    std::span<const std::byte> payload,
                                    std::span<const std::byte> data, completion &source_free) {
    if (data.size() > piece_bytes || payload.size() > most_bulk_payload_bytes) {
        return false;
    }
    peer &target = traffic_->peer_of(rank);
    {
        worker &owner = traffic_->own_worker();
        std::lock_guard const guard(owner.mutex);
        if (target.is_failed()) {
            return target.gone().take_failure();
        }
        auto connected = target.channel_of(owner);
        DIOMP_TRY(connected);
        channel &to = *connected.value();
        if (to.is_full() || !to.cuts_bulk) {
            return false;
        }
        to.has_news = true;
        to.send_bulk_message(handler, payload, data, source_free);
    }
    nudge();
    return true;
}

void ucx_network::note_handled(const message &each) {
    peer &from = traffic_->peer_of(each.source);
    if (from.note_handled(each.payload.size())) {
        worker &receiver = traffic_->first_worker();
        std::lock_guard const guard(receiver.mutex);
        traffic_->send_reply(receiver,
                             {each.source, record_kind::credit, 0, from.take_handled(), 0, 0, {}});
        traffic::ship_open(receiver);
    }
}

std::string ucx_network::describe_path(world_rank rank) const {
    peer *const known = traffic_->find_peer(rank);
    std::string const path = known == nullptr ? "" : known->path();
    return path.empty() ? "ucx (not used yet)" : path;
}

status ucx_network::drain() {
    completion done;
    status outcome;
    for (auto const &known : traffic_->spoken_to()) {
        traffic_->for_each_worker([&](worker &owner) {
            std::lock_guard const guard(owner.mutex);
            channel *const to = known->find_channel(owner);
            if (to != nullptr && !known->is_failed() && outcome.ok()) {
                outcome = status_of(flush_channel(*to, done, true));
            }
        });
    }
    advance_until([&] { return done.is_done(); }, [&] { return traffic_->advance(); });
    return outcome;
}

} // namespace

result<std::unique_ptr<network>> create(launch::launcher &launcher, const window &window,
                                        const conduit_options &options, doorbell ring) {
    auto made = std::make_unique<ucx_network>(launcher, options, std::move(ring));
    DIOMP_TRY(made->start(window, options));
    return std::unique_ptr<network>(std::move(made));
}

} // namespace diomp::conduit::ucx
