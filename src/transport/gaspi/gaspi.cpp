// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/gaspi/gaspi.h"

#include "launch/launch.h"
#include "transport/common/network_base.h"
#include "transport/gaspi/message_receiver.h"
#include "transport/gaspi/rma_operations.h"

#include <fmt/core.h>

#include <algorithm>

namespace diomp::transport::gaspi {
namespace {

using outcome = queue_pool::outcome;

/// GPI-2 has no descriptor to sleep on. While no thread polls, the network thread polls once per
/// interval, and less often after a while without traffic.
constexpr int idle_sleep_ms = 1;
constexpr int long_idle_sleep_ms = 4;
constexpr int idle_sleeps_before_long_ones = 500;
constexpr std::size_t message_bytes_limit = 8192;
constexpr const char *host_key = "gaspi.name";

std::vector<std::unique_ptr<peer>> make_peers(const std::vector<std::string> &hosts,
                                              const work_segment &work) {
    std::vector<std::unique_ptr<peer>> made;
    for (std::string const &host : hosts) {
        world_rank const rank{static_cast<int>(made.size())};
        made.push_back(std::make_unique<peer>(rank, host, work));
    }
    return made;
}

/// One lock is enough for all peers: GPI-2's TCP device is one thread per process, and its work for
/// an operation takes longer than the work under the lock.
class gaspi_network final : public network_base {
public:
    /// `hosts`: [world rank]
    gaspi_network(launch::launcher &launcher, const conduit_options &options, doorbell ring,
                  std::unique_ptr<memory> registered, const std::vector<std::string> &hosts)
        : network_base(launcher, options, std::move(ring)), memory_(std::move(registered)),
          peers_(make_peers(hosts, memory_->work())), queues_(memory_->work()),
          rma_(*memory_, queues_), sender_(launcher.info().rank, peers_.size(), *memory_, queues_),
          receiver_(peers_, sender_, mutex_) {
        caps_.name = "gaspi";
        caps_.max_message_bytes =
            std::min(message_bytes_limit, memory_->work().ring_bytes() / 4) - sizeof(record);
    }
    ~gaspi_network() override { stop_thread(); }
    gaspi_network(const gaspi_network &) = delete;
    gaspi_network &operator=(const gaspi_network &) = delete;

    status start() { return start_thread(-1); }

    status put(world_rank rank, std::uint64_t remote_address, const void *source,
               std::size_t nbytes, completion &source_free) override;
    status get(world_rank rank, std::uint64_t remote_address, void *destination, std::size_t nbytes,
               completion &done) override;
    status flush(world_rank rank, completion &done) override {
        return flush_peer(peer_of(rank), done, false);
    }
    status flush_all(completion &done) override { return flush_peers(done, false); }
    bool try_send(world_rank rank, handler_id handler, std::span<const std::byte> payload) override;
    result<bool> put_with_message(world_rank rank, std::uint64_t remote_address,
                                  std::span<const std::byte> source, handler_id handler,
                                  std::span<const std::byte> payload,
                                  completion &source_free) override;
    /// Large messages use put_with_message, which needs no copy.
    result<bool> send_long(world_rank /*rank*/, handler_id /*handler*/,
                           std::span<const std::byte> /*payload*/,
                           std::span<const std::byte> /*data*/,
                           completion & /*source_free*/) override {
        return false;
    }
    int poll(message_handler sink) override {
        bool const moved = advance();
        int const handled = receiver_.receive(sink);
        int const busy = dispatch(moved, sink); // GPI-2's messages do not pass through arrived()
        return handled == 0 ? busy : handled;
    }
    bool has_messages() const override { return receiver_.has_messages(); }
    std::string describe_path(world_rank rank) const override {
        return fmt::format("gaspi ({}): GPI-2 to {}", memory_->network(), peer_of(rank).name());
    }
    std::string describe_outstanding() const override {
        std::lock_guard const guard(mutex_);
        return describe_awaited(known_peers());
    }

private:
    bool serve() override;
    int max_sleep_ms(int /*limit_ms*/) override {
        return num_idle_sleeps_ < idle_sleeps_before_long_ones ? idle_sleep_ms : long_idle_sleep_ms;
    }
    void ping(network_peer &silent) override;
    std::vector<network_peer *> known_peers() const override { return pointers_to(peers_); }
    std::string fail(network_peer &lost, const std::string &why) override;
    status drain() override;

    [[nodiscard]] peer &peer_of(world_rank rank) const { return *peers_[rank.index()]; }
    /// Makes progress, unless another thread does. True if something progressed.
    bool advance();
    status flush_peer(peer &to, completion &done, bool also_messages);
    status flush_peers(completion &done, bool also_messages);
    template <typename Attempt>
    status retry_until_started(peer &at, Attempt &&attempt);

    std::unique_ptr<memory> memory_;
    std::vector<std::unique_ptr<peer>> peers_; ///< [world rank]
    mutable std::mutex mutex_;
    queue_pool queues_;
    rma_operations rma_;
    message_sender sender_;
    message_receiver receiver_;
    int num_idle_sleeps_ = 0; ///< consecutive; used by the network thread only
};

template <typename Attempt>
status gaspi_network::retry_until_started(peer &at, Attempt &&attempt) {
    backoff idle;
    for (;;) {
        if (at.is_failed()) {
            return at.lost_error();
        }
        {
            std::lock_guard const guard(mutex_);
            if (!at.is_failed() && attempt() == outcome::started) {
                return {};
            }
        }
        if (advance()) {
            idle.reset();
        } else {
            idle.pause();
        }
    }
}

status gaspi_network::put(world_rank rank, std::uint64_t remote_address, const void *source,
                          std::size_t nbytes, completion &source_free) {
    peer &to = peer_of(rank);
    std::uint64_t const offset = memory_->offset_in_slot(rank, remote_address);
    const auto *const from = static_cast<const std::byte *>(source);
    std::size_t const step = memory_->reaches(source, nbytes) ? chunk_bytes : large_block_bytes;
    for (std::size_t at = 0; at < nbytes; at += step) {
        DIOMP_TRY(retry_until_started(to, [&] {
            return rma_.put(to, offset + at, from + at, std::min(step, nbytes - at), source_free);
        }));
    }
    return {};
}

status gaspi_network::get(world_rank rank, std::uint64_t remote_address, void *destination,
                          std::size_t nbytes, completion &done) {
    peer &from = peer_of(rank);
    std::uint64_t const offset = memory_->offset_in_slot(rank, remote_address);
    auto *const to = static_cast<std::byte *>(destination);
    std::size_t const step =
        memory_->reaches(destination, nbytes) ? chunk_bytes : large_block_bytes;
    for (std::size_t at = 0; at < nbytes; at += step) {
        DIOMP_TRY(retry_until_started(from, [&] {
            return rma_.get(from, offset + at, to + at, std::min(step, nbytes - at), done);
        }));
    }
    return {};
}

status gaspi_network::flush_peer(peer &to, completion &done, bool also_messages) {
    DIOMP_TRY(retry_until_started(to, [&] {
        rma_.flush(to, done);
        return outcome::started;
    }));
    if (also_messages && to.outgoing.is_used()) {
        DIOMP_TRY(retry_until_started(to, [&] { return rma_.flush_messages(to, done); }));
    }
    return {};
}

status gaspi_network::flush_peers(completion &done, bool also_messages) {
    std::vector<peer *> found;
    if (also_messages || rma_.has_unflushed()) {
        std::lock_guard const guard(mutex_);
        found = rma_.unflushed();
        for (auto const &each : peers_) {
            if (also_messages && each->outgoing.is_used() && !each->is_unflushed) {
                found.push_back(each.get());
            }
        }
    }
    for (peer *const each : found) {
        DIOMP_TRY(flush_peer(*each, done, also_messages));
    }
    return {};
}

bool gaspi_network::try_send(world_rank rank, handler_id handler,
                             std::span<const std::byte> payload) {
    peer &to = peer_of(rank);
    std::lock_guard const guard(mutex_);
    if (to.is_failed()) {
        return true; // dropped; waits for a reply of this peer fail
    }
    return sender_.send(to, handler, payload, receiver_.is_handling_here());
}

result<bool> gaspi_network::put_with_message(world_rank rank, std::uint64_t remote_address,
                                             std::span<const std::byte> source, handler_id handler,
                                             std::span<const std::byte> payload,
                                             completion &source_free) {
    if (!sender_.supports_data(source)) {
        return false;
    }
    peer &to = peer_of(rank);
    std::lock_guard const guard(mutex_);
    if (to.is_failed()) {
        return to.lost_error().take_failure();
    }
    return sender_.put_with_message(to, memory_->offset_in_slot(rank, remote_address), source,
                                    handler, payload, source_free);
}

bool gaspi_network::advance() {
    bool moved = false;
    std::vector<peer *> lost;
    {
        std::unique_lock const lock(mutex_, std::try_to_lock);
        if (!lock.owns_lock()) {
            return false;
        }
        moved = queues_.advance();
        moved = rma_.advance() || moved;
        moved = sender_.advance() || moved;
        lost = queues_.take_broken();
    }
    for (peer *const each : lost) {
        fail_peer(*each, "its connection is lost");
    }
    return moved;
}

std::string gaspi_network::fail(network_peer &lost, const std::string &why) {
    std::lock_guard const guard(mutex_);
    std::string sentence = lost.fail(why);
    if (!sentence.empty()) {
        auto &ended = static_cast<peer &>(lost);
        queues_.fail(ended);
        rma_.fail(ended);
        sender_.fail(ended);
    }
    return sentence;
}

void gaspi_network::ping(network_peer &silent) {
    auto &target = static_cast<peer &>(silent);
    std::lock_guard const guard(mutex_);
    sender_.read_credit(target);
    if (!target.is_failed() && target.markers_of(marker_kind::messages).empty()) {
        rma_.start_marker(target, marker_kind::messages);
    }
}

bool gaspi_network::serve() {
    bool const moved = advance();
    num_idle_sleeps_ = moved || has_messages() ? 0 : num_idle_sleeps_ + 1;
    return moved;
}

status gaspi_network::drain() {
    completion done;
    DIOMP_TRY(flush_peers(done, true));
    advance_until([&] { return done.is_done(); }, [&] { return advance(); });
    return {};
}

} // namespace

result<std::unique_ptr<network>> create(launch::launcher &launcher, const arena &arena,
                                        const conduit_options &options, doorbell ring) {
    auto const &job = launcher.info();
    DIOMP_TRY(launcher.put(host_key, job.host));
    DIOMP_TRY(launcher.fence());
    std::vector<std::string> hosts;
    for (int rank = 0; rank < job.size; ++rank) {
        auto host = launcher.get(world_rank{rank}, host_key);
        DIOMP_TRY(host);
        hosts.push_back(host.take());
    }
    DIOMP_TRY(launch::gaspi::start(launcher));
    auto registered = memory::create(arena, job.rank);
    DIOMP_TRY(registered);
    auto made = std::make_unique<gaspi_network>(launcher, options, std::move(ring),
                                                registered.take(), hosts);
    DIOMP_TRY(made->start());
    return std::unique_ptr<network>(std::move(made));
}

} // namespace diomp::transport::gaspi
