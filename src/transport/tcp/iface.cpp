// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/tcp/iface.h"

#include "base/log.h"
#include "launch/same_node.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <sys/epoll.h>
#include <sys/socket.h>

namespace diomp::transport::tcp {
namespace {

/// Calls of advance() that read a single connection without epoll between two that poll all
/// descriptors, where ranks may be waiting to connect.
constexpr std::uint32_t poll_interval = 64;
/// Time limit of a connection attempt to one address.
constexpr std::chrono::seconds connect_timeout{3};
/// Attempts at an address that closes the connection during the handshake: a rank with many
/// unauthenticated connections closes some to free space.
constexpr int max_closed_attempts = 20;

/// Null for a connection without encryption.
std::unique_ptr<sealed_stream> make_stream(secure::session_keys &&proven) {
    return proven.mode == secure::protection::sealed
               ? std::make_unique<sealed_stream>(std::move(proven))
               : nullptr;
}

/// Events of this descriptor carry `table`; events of connections carry the connection.
bool register_table(int epoll, int descriptor, void *table) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = table;
    return ::epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) == 0;
}

} // namespace

iface::iface(launch::launcher &launcher, const arena &arena, const conduit_options &options,
             tuning how, arrivals &arrived, peer_failure_handler on_peer_failure)
    : launcher_(launcher), own_rank_(launcher.info().rank), arrived_(arrived),
      on_peer_failure_(std::move(on_peer_failure)), tuning_(std::move(how)),
      slot_begin_(reinterpret_cast<std::uint64_t>(arena.slot(launcher.info().rank))),
      slot_bytes_(arena.slot_bytes()), num_unconnected_(options.num_network_peers),
      encrypts_(options.encrypts), secret_(secure::secret::random()),
      peers_(static_cast<std::size_t>(launcher.info().size)), connections_(2 * peers_.num_ranks()),
      is_watched_for_write_(connections_.size()), attempts_(peers_.num_ranks()) {}

iface::~iface() = default;

result<std::unique_ptr<iface>> iface::create(launch::launcher &launcher, const arena &arena,
                                             const conduit_options &options, arrivals &arrived,
                                             peer_failure_handler on_peer_failure) {
    auto how = tuning::create(options.tcp_send_buffer_bytes, options.tcp_congestion);
    DIOMP_TRY(how);
    std::unique_ptr<iface> made(
        new iface(launcher, arena, options, how.take(), arrived, std::move(on_peer_failure)));
    auto addresses = own_addresses(options.tcp_interfaces);
    DIOMP_TRY(addresses);
    made->own_address_.node = launch::node_identity();
    made->own_address_.addresses = addresses.take();
    auto local = all_addresses();
    DIOMP_TRY(local);
    made->local_addresses_ = local.take();
    DIOMP_TRY(made->listen_for_ranks());
    return made;
}

/// Collective. Publishes this rank's addresses and distributes rank 0's secret.
status iface::listen_for_ranks() {
    auto listener = listen(own_address_.port, tuning_,
                           launcher_.info().is_on_one_machine() ? listen_scope::loopback
                                                                : listen_scope::everywhere);
    DIOMP_TRY(listener);
    DIOMP_TRY(launcher_.put(address_key, encode_address_blob(own_address_)));
    DIOMP_TRY(launcher_.put(host_key, launcher_.info().host));
    if (own_rank_ == world_rank(0)) {
        std::string text = secret_.encode();
        status published = launcher_.put(secret_key, text);
        secure::erase(text);
        DIOMP_TRY(published);
    }
    DIOMP_TRY(launcher_.fence());
    auto text = launcher_.get(world_rank(0), secret_key);
    DIOMP_TRY(text);
    auto secret = secure::secret::decode(text.value());
    secure::erase(text.value());
    if (!secret) {
        return error(OMPX_ERR_SYSTEM,
                     "the launcher returned a damaged copy of the secret that rank 0 published");
    }
    secret_ = secret.take();
    auto pending = secure::pending_connections::create(
        listener.take(),
        [this] {
            return secure::handshake::respond(
                secret_, handshake_options(),
                {secure::role::rank, 0, static_cast<std::uint32_t>(peers_.num_ranks())});
        },
        [](const std::string &text) { log(log_level::warn, "tcp: {}", text); });
    DIOMP_TRY(pending);
    pending_.emplace(pending.take());
    auto opening = secure::opening_connections::create();
    DIOMP_TRY(opening);
    opening_.emplace(opening.take());
    epoll_ = unique_fd(::epoll_create1(EPOLL_CLOEXEC));
    if (!epoll_.valid() || !register_table(epoll_.get(), pending_->fd(), &pending_) ||
        !register_table(epoll_.get(), opening_->fd(), &opening_)) {
        return system_error("epoll", errno);
    }
    return {};
}

secure::handshake_options iface::handshake_options() const {
    return {.why = secure::purpose::transfers,
            .self = {secure::role::rank, static_cast<std::uint32_t>(own_rank_.value())},
            .version = protocol_version,
            .wanted = encrypts_ ? secure::protection::sealed : secure::protection::plain};
}

void iface::begin_shutdown() {
    is_shutting_down_.store(true, std::memory_order_relaxed);
    stop_listening();
}

void iface::stop_listening() {
    std::lock_guard const guard(pending_mutex_);
    pending_->stop_listening();
}

/// Both sides use the connection, so the peer will not open another one. Closes the listening port
/// after the last peer.
void iface::note_connected(peer &known) {
    if (known.note_connected() && num_unconnected_.fetch_sub(1) == 1) {
        stop_listening();
    }
}

peer &iface::peer_of(world_rank rank) {
    return peers_.find_or_make(rank, [&] {
        auto host = launcher_.get(rank, host_key);
        return std::make_unique<peer>(rank, host ? host.take() : std::string(), &num_busy_);
    });
}

connection &iface::add(std::unique_ptr<connection> made) {
    std::size_t const before = num_connections_.load(std::memory_order_relaxed);
    connections_[before] = std::move(made);
    num_connections_.store(before + 1, std::memory_order_release);
    return *connections_[before];
}

void iface::register_connection(connection &open) {
    num_alive_.fetch_add(1, std::memory_order_release);
    set_epoll_events(EPOLL_CTL_ADD, open, false);
}

void iface::deregister(connection &old_connection) {
    if (old_connection.stream().fd() < 0) {
        return; // it has never been open
    }
    set_epoll_events(EPOLL_CTL_DEL, old_connection, false);
    num_alive_.fetch_sub(1, std::memory_order_release);
}

connection *iface::sole_connection() const {
    if (num_alive_.load(std::memory_order_acquire) != 1) {
        return nullptr;
    }
    auto const found = std::ranges::find_if(
        connections(), [](auto &each) { return is_open(each->current_state()); });
    return found == connections().end() ? nullptr : found->get();
}

void iface::set_epoll_events(int operation, connection &which, bool for_write) const {
    epoll_event event{};
    event.events = EPOLLIN | (for_write ? EPOLLOUT : 0U);
    event.data.ptr = &which;
    ::epoll_ctl(epoll_.get(), operation, which.stream().fd(), &event);
}

connection *iface::find_or_connect(peer &to) {
    if (connection *const open = to.active_connection(); open != nullptr) [[likely]] {
        return open;
    }
    status opened;
    {
        std::lock_guard const guard(connections_mutex_);
        if (connection *const open = to.active_connection(); open != nullptr) {
            return open;
        }
        opened = has_capacity() ? connect_next_address(to, {})
                                : error(OMPX_ERR_PEER, "too many connections by other ranks");
        if (opened.ok()) {
            connection &added = add(std::make_unique<connection>(to, &num_busy_));
            to.set_connection(added);
            return &added;
        }
    }
    on_peer_failure_(to, opened.failure().message());
    return nullptr;
}

/// Under connections_mutex_. Connects to the next address; an error, with `previous_error`, if none
/// is left.
status iface::connect_next_address(peer &target, const std::string &previous_error) {
    auto const text = launcher_.get(target.rank(), address_key);
    address_blob const theirs = text.ok() ? decode_address_blob(text.value()) : address_blob{};
    std::vector<in6_addr> const candidates =
        candidate_addresses(theirs, own_address_, local_addresses_);
    std::size_t &next = attempts_[target.rank().index()].next_address;
    std::string why = previous_error;
    while (next < candidates.size()) {
        in6_addr const &candidate = candidates[next++];
        auto started = start_connecting(candidate, theirs.port, tuning_);
        if (started.ok()) {
            log(log_level::debug, "tcp: connecting to {} at {}", target.name(), to_text(candidate));
            auto const number = static_cast<std::uint32_t>(target.rank().value());
            opening_->add(number, started.take(),
                          secure::handshake::initiate(secret_, handshake_options(),
                                                      {secure::role::rank, number}),
                          connect_timeout);
            return {};
        }
        why = started.failure().message();
    }
    return error(OMPX_ERR_PEER, fmt::format("it cannot be reached at any of its {} addresses ({})",
                                            candidates.size(), why.empty() ? "it has none" : why));
}

/// Under connections_mutex_. An error if the target cannot be reached.
status iface::finish_opening(secure::opening_connections::attempt_result ended, peer &target) {
    using outcome = secure::opening_connections::outcome;
    connection &which = *target.active_connection();
    if (ended.how == outcome::proven) {
        tuning_.adapt(ended.socket.get());
        if (which.open(std::move(ended.socket), make_stream(std::move(*ended.proven)))) {
            register_connection(which);
            if (own_rank_ < target.rank()) {
                static_cast<void>(which.confirm());
            }
        }
        return {};
    }
    attempts &tried = attempts_[target.rank().index()];
    if (ended.how == outcome::closed && ++tried.num_closed < max_closed_attempts) {
        --tried.next_address;
    } else {
        tried.num_closed = 0;
    }
    status next = connect_next_address(target, ended.why);
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
        for (auto &each : opening_->advance()) {
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
    deregister(which);
    peer *const target = which.target();
    if (target != nullptr && !is_shutting_down_.load(std::memory_order_relaxed)) {
        on_peer_failure_(*target, which.failure_reason());
    }
}

bool iface::accept_authenticated() {
    std::vector<secure::pending_connections::proven_connection> proven;
    {
        std::unique_lock const guard(pending_mutex_, std::try_to_lock);
        if (!guard.owns_lock()) {
            return false;
        }
        proven = pending_->advance();
    }
    for (auto &each : proven) {
        accept_peer(std::move(each));
    }
    return !proven.empty();
}

/// Accepts an authenticated connection of a rank.
void iface::accept_peer(secure::pending_connections::proven_connection from) {
    peer &known = peer_of(world_rank(static_cast<int>(from.proven.peer.number)));
    tuning_.adapt(from.socket.get());
    bool was_adopted = false;
    {
        std::lock_guard const guard(connections_mutex_);
        was_adopted = adopt_connection(std::move(from), known);
    }
    if (was_adopted) {
        note_connected(known);
    }
}

bool iface::adopt_connection(secure::pending_connections::proven_connection from, peer &known) {
    auto const number = from.proven.peer.number;
    if (!has_capacity()) {
        log(log_level::warn, "tcp: connection of {} refused: it has connected too often",
            known.name());
        return false;
    }
    connection *const ours = known.active_connection();
    if (ours != nullptr && own_rank_ < known.rank()) {
        // This rank's own connection is used; the peer closes the redundant one when it arrives.
        register_connection(add(std::make_unique<connection>(std::move(from.socket), &num_busy_)));
        return false;
    }
    auto made = std::make_unique<connection>(std::move(from.socket), known,
                                             make_stream(std::move(from.proven)), &num_busy_);
    if (ours != nullptr) {
        bool const was_opening = ours->current_state() == connection::state::opening;
        if (!ours->supersede_by(*made)) {
            return false;
        }
        if (was_opening) {
            opening_->remove(number);
        } else {
            deregister(*ours);
        }
    }
    connection &added = add(std::move(made));
    register_connection(added);
    known.set_connection(added);
    added.send({.what = kind::conn_ack}, nullptr, 0, nullptr);
    return true;
}

bool iface::poll_descriptors() {
    std::array<epoll_event, 64> events;
    int const count = ::epoll_wait(epoll_.get(), events.data(), events.size(), 0);
    bool moved = false;
    for (int i = 0; i < count; ++i) {
        void *const which = events[static_cast<std::size_t>(i)].data.ptr;
        if (which == &pending_) {
            moved = accept_authenticated() || moved;
        } else if (which == &opening_) {
            moved = progress_openings() || moved;
        } else {
            moved = static_cast<connection *>(which)->incoming().receive(*this) || moved;
        }
    }
    return moved;
}

bool iface::transmit_all(bool also_coalesced) {
    if (num_busy_.load(std::memory_order_acquire) == 0) {
        return false;
    }
    if (also_coalesced) {
        for (auto const &each : all_peers()) {
            each->drain_coalescers();
        }
    }
    bool moved = false;
    for (auto const &each : connections()) {
        if (each->has_queued_data()) {
            moved = each->transmit() || moved;
        }
        if (each->current_state() == connection::state::broken) [[unlikely]] {
            close_if_broken(*each);
        }
    }
    return moved;
}

bool iface::advance() {
    // Concurrent increments may get lost.
    std::uint32_t const num_advances = num_advances_.load(std::memory_order_relaxed) + 1;
    num_advances_.store(num_advances, std::memory_order_relaxed);
    bool moved = transmit_all(num_advances % poll_interval == 0);
    // Reading a single connection is faster than polling it first, unless other threads write to
    // it.
    connection *const sole = sole_connection();
    bool const polls_all =
        sole == nullptr || sole->writer().is_used_by_others() || num_advances % poll_interval == 0;
    moved = (polls_all ? poll_descriptors() : sole->incoming().receive(*this)) || moved;
    return transmit_all() || moved; // sends replies
}

bool iface::serve() {
    bool const moved = poll_descriptors();
    return transmit_all(true) || moved;
}

bool iface::arm() {
    std::size_t index = 0;
    for (auto const &each : connections()) {
        bool const waits =
            each->has_queued_data() && each->current_state() == connection::state::connected;
        if (is_watched_for_write_[index++].exchange(waits) != waits) {
            set_epoll_events(EPOLL_CTL_MOD, *each, waits);
        }
    }
    return true;
}

} // namespace diomp::transport::tcp
