// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/tcp/iface.h"

#include "base/log.h"
#include "launch/launch.h"
#include "launch/same_node.h"
#include "transport/options.h"
#include "transport/tcp/connection.h"
#include "transport/tcp/connector.h"
#include "transport/tcp/frame_dispatcher.h"

namespace diomp::transport::tcp {
namespace {

/// Key of a rank's host in the launcher's key-value space.
constexpr const char *host_key = "tcp.host";

/// Calls of advance() between two that send partly filled packets.
constexpr std::uint32_t coalescing_interval = 64;

/// advance() reads a single connection without epoll. It polls all descriptors, where ranks may be
/// waiting to connect, after this time; the clock is read once in so many calls. A number of calls
/// alone would be long where ranks share a core, and a handshake takes several rounds.
constexpr auto poll_interval = std::chrono::microseconds(100);
constexpr std::uint32_t clock_interval = 8;

/// Null for a connection without encryption.
std::unique_ptr<sealed_stream> make_stream(secure::session_keys &&proven) {
    return proven.mode == secure::protection::sealed
               ? std::make_unique<sealed_stream>(std::move(proven))
               : nullptr;
}

} // namespace

struct iface::setup {
    setup(launch::launcher &launcher, const arena &arena, const conduit_options &options,
          const tuning &chosen, arrivals &arrived)
        : how(chosen), own_credentials(launcher.info(), options.encrypts),
          accepting(options.num_network_peers),
          dispatcher(launcher.info().rank, arena, arrived, accepting),
          opening(launcher, how, own_credentials) {}

    tuning how;
    credentials own_credentials;
    acceptor accepting;
    frame_dispatcher dispatcher;
    connector opening; ///< under connections_mutex_
};

iface::iface(launch::launcher &launcher, const arena &arena, const conduit_options &options,
             const tuning &how, arrivals &arrived, peer_failure_handler on_peer_failure)
    : launcher_(launcher), on_peer_failure_(std::move(on_peer_failure)),
      setup_(std::make_unique<setup>(launcher, arena, options, how, arrived)),
      peers_(static_cast<std::size_t>(launcher.info().size)), connections_(2 * peers_.num_ranks()) {
}

iface::~iface() = default;

result<std::unique_ptr<iface>> iface::create(launch::launcher &launcher, const arena &arena,
                                             const conduit_options &options, arrivals &arrived,
                                             peer_failure_handler on_peer_failure) {
    auto how = tuning::create(options.tcp.send_buffer_bytes, options.tcp.congestion);
    DIOMP_TRY(how);
    std::unique_ptr<iface> made(
        new iface(launcher, arena, options, how.take(), arrived, std::move(on_peer_failure)));
    DIOMP_TRY(made->start(options.tcp.interfaces));
    return made;
}

/// Collective. Publishes this rank's addresses, which are those of `interfaces`, and listens.
status iface::start(const std::string &interfaces) {
    auto addresses = own_addresses(interfaces);
    DIOMP_TRY(addresses);
    address_blob own{.node = launch::node_identity(), .addresses = addresses.take()};
    auto local = all_addresses();
    DIOMP_TRY(local);
    auto listener = listen(own.port, setup_->how,
                           launcher_.info().is_on_one_machine() ? listen_scope::loopback
                                                                : listen_scope::everywhere);
    DIOMP_TRY(listener);
    DIOMP_TRY(launcher_.put(address_key, encode_address_blob(own)));
    DIOMP_TRY(launcher_.put(host_key, launcher_.info().host));
    DIOMP_TRY(setup_->own_credentials.share(launcher_));
    DIOMP_TRY(setup_->accepting.start(listener.take(), setup_->own_credentials));
    DIOMP_TRY(setup_->opening.start(std::move(own), local.take()));
    DIOMP_TRY(connections_.open());
    DIOMP_TRY(connections_.watch(setup_->accepting.fd(), &setup_->accepting));
    return connections_.watch(setup_->opening.fd(), &setup_->opening);
}

void iface::begin_shutdown() {
    is_shutting_down_.store(true, std::memory_order_relaxed);
    setup_->accepting.stop_listening();
}

void iface::revoke_recv_buffer(const std::byte *buffer) {
    for (auto const &each : connections_.all()) {
        each->incoming().revoke_body_buffer(buffer);
    }
}

peer &iface::peer_of(world_rank rank) {
    return peers_.find_or_make(rank, [&] {
        auto host = launcher_.get(rank, host_key);
        return std::make_unique<peer>(rank, host ? host.take() : std::string(),
                                      connections_.num_busy());
    });
}

connection *iface::find_or_connect(peer &to) {
    if (connection *const open = to.active_connection(); open != nullptr) [[likely]] {
        return open;
    }
    status opened;
    {
        std::lock_guard const guard(connections_mutex_);
        if (connection *const open = to.active_connection(); open != nullptr || to.is_failed()) {
            return open;
        }
        opened = connections_.has_capacity()
                     ? setup_->opening.connect(to)
                     : error(OMPX_ERR_PEER, "too many connections by other ranks");
        if (opened.ok()) {
            connection &added =
                connections_.add(std::make_unique<connection>(to, connections_.num_busy()));
            to.set_connection(added);
            return &added;
        }
    }
    on_peer_failure_(to, opened.failure().message());
    return nullptr;
}

// Under the lock that adopt_connection is called with, so that no connection replaces the one that
// is closed here: a peer has failed before this is called, and adopt_connection refuses it later.
void iface::disconnect(peer &lost, const std::string &why) {
    std::lock_guard const guard(connections_mutex_);
    if (connection *const conn = lost.active_connection(); conn != nullptr) {
        conn->disconnect(why);
    }
}

/// Under connections_mutex_. An error if the target cannot be reached.
status iface::finish_opening(secure::attempt_result ended, peer &target) {
    connection &which = *target.active_connection();
    if (ended.how == secure::attempt_outcome::proven) {
        setup_->how.adapt(ended.socket.get());
        if (which.open(std::move(ended.socket), make_stream(std::move(*ended.proven)))) {
            connections_.watch(which);
            if (launcher_.info().rank < target.rank()) {
                static_cast<void>(which.confirm());
            }
        }
        return {};
    }
    status next = setup_->opening.retry(target, ended);
    if (!next) {
        which.disconnect(next.failure().message());
        static_cast<void>(which.mark_closed());
    }
    return next;
}

bool iface::progress_openings() {
    std::vector<std::pair<peer *, std::string>> lost;
    bool moved = false;
    {
        std::unique_lock const guard(connections_mutex_, std::try_to_lock);
        if (!guard.owns_lock()) {
            return false;
        }
        for (secure::attempt_result &each : setup_->opening.advance()) {
            peer &target = *peers_.find(world_rank(static_cast<int>(each.tag)));
            moved = true;
            if (status const ended = finish_opening(std::move(each), target); !ended) {
                lost.emplace_back(&target, ended.failure().message());
            }
        }
    }
    for (auto const &[target, why] : lost) {
        on_peer_failure_(*target, why);
    }
    return moved;
}

/// Reports the peer of a connection that has broken as failed, once.
void iface::close_if_broken(connection &which) {
    if (!which.mark_closed()) {
        return;
    }
    connections_.unwatch(which);
    peer *const target = which.target();
    if (target != nullptr && !is_shutting_down_.load(std::memory_order_relaxed)) {
        on_peer_failure_(*target, which.failure_reason());
    }
}

bool iface::accept_peers() {
    auto proven = setup_->accepting.advance();
    for (secure::proven_connection &each : proven) {
        accept_peer(std::move(each));
    }
    return !proven.empty();
}

/// Accepts an authenticated connection of a rank.
void iface::accept_peer(secure::proven_connection from) {
    peer &known = peer_of(world_rank(static_cast<int>(from.proven.peer.number)));
    setup_->how.adapt(from.socket.get());
    bool was_adopted = false;
    {
        std::lock_guard const guard(connections_mutex_);
        was_adopted = adopt_connection(std::move(from), known);
    }
    if (was_adopted) {
        setup_->accepting.note_connected(known);
    }
}

bool iface::adopt_connection(secure::proven_connection from, peer &known) {
    if (!connections_.has_capacity()) {
        log(log_level::warn, "tcp: connection of {} refused: it has connected too often",
            known.name());
        return false;
    }
    if (known.is_failed()) {
        log(log_level::info, "tcp: connection of {} refused: it has failed", known.name());
        return false;
    }
    connection *const ours = known.active_connection();
    if (ours != nullptr && launcher_.info().rank < known.rank()) {
        // This rank's own connection is used; the peer closes the redundant one when it arrives.
        connections_.watch(connections_.add(
            std::make_unique<connection>(std::move(from.socket), connections_.num_busy())));
        return false;
    }
    auto made =
        std::make_unique<connection>(std::move(from.socket), known,
                                     make_stream(std::move(from.proven)), connections_.num_busy());
    if (ours != nullptr) {
        bool const was_opening = ours->current_state() == connection::state::opening;
        if (!ours->supersede_by(*made)) {
            return false;
        }
        if (was_opening) {
            setup_->opening.cancel(known.rank());
        } else {
            connections_.unwatch(*ours);
        }
    }
    connection &added = connections_.add(std::move(made));
    connections_.watch(added);
    known.set_connection(added);
    added.send({.what = kind::conn_ack}, nullptr, 0, nullptr);
    return true;
}

bool iface::poll_descriptors() {
    return connections_.poll([this](void *which) {
        return which == &setup_->accepting ? accept_peers()
               : which == &setup_->opening
                   ? progress_openings()
                   : static_cast<connection *>(which)->incoming().receive(setup_->dispatcher);
    });
}

bool iface::transmit_all(bool also_coalesced) {
    if (connections_.num_busy()->load(std::memory_order_acquire) == 0) {
        return false;
    }
    if (also_coalesced) {
        for (auto const &each : peers_.all()) {
            each->drain_coalescers();
        }
    }
    bool moved = false;
    for (auto const &each : connections_.all()) {
        if (each->has_queued_data()) {
            moved = each->transmit() || moved;
        }
        if (each->current_state() == connection::state::broken) [[unlikely]] {
            close_if_broken(*each);
        }
    }
    return moved;
}

bool iface::poll_descriptors_is_due(std::uint32_t num_advances) {
    if (num_advances % clock_interval != 0) {
        return false;
    }
    auto const now = std::chrono::steady_clock::now().time_since_epoch();
    // Threads may poll twice: that does no harm.
    if (now - last_poll_.load(std::memory_order_relaxed) < poll_interval) {
        return false;
    }
    last_poll_.store(now, std::memory_order_relaxed);
    return true;
}

bool iface::advance() {
    // Concurrent increments may get lost.
    std::uint32_t const num_advances = num_advances_.load(std::memory_order_relaxed) + 1;
    num_advances_.store(num_advances, std::memory_order_relaxed);
    bool moved = transmit_all(num_advances % coalescing_interval == 0);
    // Reading a single connection is faster than polling it first, unless other threads write to
    // it.
    connection *const sole = connections_.sole();
    bool const polls_all = sole == nullptr || sole->writer().is_used_by_others() ||
                           poll_descriptors_is_due(num_advances);
    moved =
        (polls_all ? poll_descriptors() : sole->incoming().receive(setup_->dispatcher)) || moved;
    return transmit_all() || moved; // sends replies
}

bool iface::serve() {
    bool const moved = poll_descriptors();
    return transmit_all(true) || moved;
}

} // namespace diomp::transport::tcp
