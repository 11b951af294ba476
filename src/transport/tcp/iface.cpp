// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/tcp/iface.h"

#include "base/log.h"
#include "launch/launch.h"
#include "launch/same_node.h"
#include "transport/options.h"
#include "transport/tcp/connection.h"
#include "transport/tcp/connector.h"
#include "transport/tcp/frame_dispatcher.h"

#include <algorithm>
#include <sys/resource.h>

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

void log_refused(const peer &known) {
    log(log_level::warn, "tcp: connection of {} refused: it has connected too often", known.name());
}

/// Null for a connection without encryption.
std::unique_ptr<sealed_stream> make_stream(secure::session_keys &&proven) {
    return proven.mode == secure::protection::sealed
               ? std::make_unique<sealed_stream>(std::move(proven))
               : nullptr;
}

/// Number of sockets to peers. Three of four descriptors that the process may have: files of the
/// program and other parts of the runtime need some.
int limit_of(const conduit_options &options) {
    if (options.tcp.max_connections > 0) {
        return options.tcp.max_connections;
    }
    constexpr rlim_t max_limit = 1U << 30U;
    rlimit files{max_limit, max_limit};
    ::getrlimit(RLIMIT_NOFILE, &files);
    return static_cast<int>(std::min(files.rlim_cur, max_limit) / 4 * 3);
}

} // namespace

struct iface::setup {
    setup(launch::launcher &launcher, const arena &arena, const conduit_options &options,
          const tuning &chosen, arrivals &arrived)
        : how(chosen), own_credentials(launcher.info(), options.encrypts),
          accepting(options.num_network_peers, limit_of(options) < options.num_network_peers),
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
      peers_(static_cast<std::size_t>(launcher.info().size)),
      max_sockets_(static_cast<std::size_t>(limit_of(options))),
      connections_(2 * peers_.num_ranks()) {}

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
    auto all = own_interfaces();
    DIOMP_TRY(all);
    auto addresses = own_addresses(all.value(), interfaces);
    DIOMP_TRY(addresses);
    address_blob own{.host = identify_host(all.value()), .addresses = addresses.take()};
    auto listener = listen(own.port, setup_->how,
                           launcher_.info().is_on_one_machine() ? listen_scope::loopback
                                                                : listen_scope::everywhere);
    DIOMP_TRY(listener);
    DIOMP_TRY(launcher_.put(address_key, encode_address_blob(own)));
    DIOMP_TRY(launcher_.put(host_key, launcher_.info().host));
    DIOMP_TRY(setup_->own_credentials.share(launcher_));
    DIOMP_TRY(setup_->accepting.start(listener.take(), setup_->own_credentials));
    DIOMP_TRY(setup_->opening.start(std::move(own), all_addresses(all.value())));
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
    to.note_use();
    auto const usable = [&] {
        connection *const found = to.active_connection();
        return found != nullptr && found->current_state() != connection::state::dormant ? found
                                                                                        : nullptr;
    };
    if (connection *const open = usable(); open != nullptr) [[likely]] {
        return open;
    }
    status opened;
    {
        std::lock_guard const guard(connections_mutex_);
        if (connection *const open = usable(); open != nullptr || to.is_failed()) {
            return to.active_connection();
        }
        opened = open_connection(to);
        if (opened.ok()) {
            return to.active_connection();
        }
    }
    on_peer_failure_(to, opened.failure().message());
    return nullptr;
}

status iface::open_connection(peer &to) {
    connection *const dormant = to.active_connection();
    if (dormant == nullptr && !connections_.has_capacity()) {
        return error(OMPX_ERR_PEER, "too many connections by other ranks");
    }
    make_space();
    if (dormant == nullptr) {
        DIOMP_TRY(setup_->opening.connect(to));
        to.set_connection(
            connections_.add(std::make_unique<connection>(to, connections_.num_busy())));
    } else if (dormant->lifecycle().reopen()) {
        if (status started = setup_->opening.connect(to); !started) {
            dormant->disconnect(started.failure().message());
            static_cast<void>(dormant->lifecycle().mark_closed());
            return started;
        }
    }
    return {};
}

void iface::make_space() {
    constexpr int max_at_once = 4; // where connections could not be closed before
    for (int i = 0; i < max_at_once; ++i) {
        auto const used = static_cast<std::size_t>(connections_.num_sockets()) +
                          setup_->opening.num_attempts() - static_cast<std::size_t>(i);
        if (used < max_sockets_ || !connections_.close_idle_one()) {
            return;
        }
    }
}

/// Closes the socket of a connection that both sides have given up, and opens a new one if data
/// waits.
void iface::release(connection &which) {
    peer &target = *which.target();
    status opened;
    {
        std::lock_guard const guard(connections_mutex_);
        if (which.lifecycle().release()) {
            log(log_level::debug, "tcp: the idle connection to {} is closed", target.name());
            connections_.note_socket_closed();
        }
        if (which.lifecycle().needs_release() && !target.is_failed()) {
            opened = open_connection(target);
        }
    }
    if (!opened) {
        on_peer_failure_(target, opened.failure().message());
    }
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
        setup_->opening.note_connected(target.rank());
        if (which.lifecycle().open(std::move(ended.socket),
                                   make_stream(std::move(*ended.proven)))) {
            connections_.watch(which);
            if (launcher_.info().rank < target.rank()) {
                static_cast<void>(which.lifecycle().confirm());
            }
        }
        return {};
    }
    status next = setup_->opening.retry(target, ended);
    if (!next) {
        which.disconnect(next.failure().message());
        static_cast<void>(which.lifecycle().mark_closed());
    }
    return next;
}

bool iface::progress_openings() {
    std::vector<std::pair<peer *, std::string>> lost;
    bool moved = false;
    {
        std::lock_guard const guard(connections_mutex_); // as in acceptor::advance()
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
    {
        std::lock_guard const guard(connections_mutex_);
        if (!which.lifecycle().mark_closed()) {
            return;
        }
        connections_.unwatch(which);
    }
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
    if (known.is_failed()) {
        log(log_level::info, "tcp: connection of {} refused: it has failed", known.name());
        return false;
    }
    using state = connection::state;
    connection *ours = known.active_connection();
    state const before = ours == nullptr ? state::closed : ours->current_state();
    bool const was_closed = before == state::yielded || before == state::ended ||
                            before == state::dormant || before == state::accepted ||
                            ours == nullptr;
    if (!was_closed && launcher_.info().rank < known.rank()) {
        // This rank's own connection is used; the peer closes the redundant one when it arrives.
        if (!connections_.add_redundant(std::move(from.socket))) {
            log_refused(known);
        }
        return false;
    }
    bool const is_first = ours == nullptr;
    if (!is_first && is_closed_by_peer(from.socket.get())) {
        // Both had opened a connection; the peer has used this rank's, and that was closed before
        // this thread has come to look at the other one.
        log(log_level::debug, "tcp: an outdated connection of {}", known.name());
        return false;
    }
    make_space();
    if (is_first) {
        if (!connections_.has_capacity()) {
            log_refused(known);
            return false;
        }
        ours = &connections_.add(std::make_unique<connection>(std::move(from.socket), known,
                                                              make_stream(std::move(from.proven)),
                                                              connections_.num_busy()));
    } else {
        if (!ours->lifecycle().adopt(std::move(from.socket), make_stream(std::move(from.proven)))) {
            return false;
        }
        if (before == state::opening) {
            setup_->opening.cancel(known.rank());
        } else if (before != state::dormant) {
            connections_.note_socket_closed();
        }
    }
    connections_.watch(*ours);
    known.set_connection(*ours);
    known.note_use();
    setup_->opening.note_connected(known.rank());
    if (is_first) {
        ours->send({.what = kind::conn_ack}, nullptr, 0, nullptr);
    }
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
        } else if (each->lifecycle().needs_release()) [[unlikely]] {
            release(*each);
            moved = true;
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
