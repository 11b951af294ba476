// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "conduit/tcp/traffic.h"

#include "base/log.h"
#include "launch/same_node.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <sys/epoll.h>
#include <sys/socket.h>

namespace diomp::conduit::tcp {
namespace {

/// Of the advances that read one connection without asking whether it has something, every so often
/// one looks at all descriptors: somebody may want to connect.
constexpr std::uint32_t every = 64;
/// How long one address may take to answer.
constexpr std::chrono::seconds opening_limit{3};
/// Another connection to an address that has closed one during the handshake: a rank that many
/// unauthenticated connections reach may have closed it to make room.
constexpr int most_closed = 20;

/// Null for a plain connection.
std::unique_ptr<sealed_stream> make_stream(secure::session &&proven) {
    return proven.mode == secure::protection::sealed
               ? std::make_unique<sealed_stream>(std::move(proven))
               : nullptr;
}

/// Its events name the table, those of links the link.
bool watch_table(int epoll, int descriptor, void *table) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = table;
    return ::epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) == 0;
}

} // namespace

traffic::traffic(launch::launcher &launcher, const window &window, const conduit_options &options,
                 tuning how, arrivals &arrived, loss_sink lose)
    : launcher_(launcher), own_rank_(launcher.info().rank), arrived_(arrived),
      lose_(std::move(lose)), tuning_(std::move(how)),
      slot_begin_(reinterpret_cast<std::uint64_t>(window.slot(launcher.info().rank))),
      slot_bytes_(window.slot_bytes()), num_missing_(options.num_network_peers),
      encrypts_(options.encrypts), secret_(secure::secret::random()),
      peers_(static_cast<std::size_t>(launcher.info().size)), links_(2 * peers_.num_ranks()),
      attempts_(peers_.num_ranks()) {}

traffic::~traffic() = default;

result<std::unique_ptr<traffic>> traffic::create(launch::launcher &launcher, const window &window,
                                                 const conduit_options &options, arrivals &arrived,
                                                 loss_sink lose) {
    auto how = tuning::create(options.tcp_send_buffer_bytes, options.tcp_congestion);
    DIOMP_TRY(how);
    std::unique_ptr<traffic> made(
        new traffic(launcher, window, options, how.take(), arrived, std::move(lose)));
    auto addresses = own_addresses(options.tcp_interfaces);
    DIOMP_TRY(addresses);
    made->own_card_.node = launch::node_identity();
    made->own_card_.addresses = addresses.take();
    auto local = all_addresses();
    DIOMP_TRY(local);
    made->local_addresses_ = local.take();
    DIOMP_TRY(made->listen_for_ranks());
    return made;
}

/// Collective. Publishes where this rank listens; rank 0's secret becomes that of all.
status traffic::listen_for_ranks() {
    auto listener =
        listen(own_card_.port, tuning_,
               launcher_.info().is_on_one_machine() ? reach::loopback : reach::everywhere);
    DIOMP_TRY(listener);
    DIOMP_TRY(launcher_.put(card_key, write_card(own_card_)));
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
        return error(OMPX_ERR_SYSTEM, "the launcher has changed what rank 0 published");
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
    if (!epoll_.valid() || !watch_table(epoll_.get(), pending_->fd(), &pending_) ||
        !watch_table(epoll_.get(), opening_->fd(), &opening_)) {
        return system_error("epoll", errno);
    }
    return {};
}

secure::handshake_options traffic::handshake_options() const {
    return {.why = secure::purpose::transfers,
            .self = {secure::role::rank, static_cast<std::uint32_t>(own_rank_.value())},
            .version = protocol_version,
            .wanted = encrypts_ ? secure::protection::sealed : secure::protection::plain};
}

void traffic::expect_ends() {
    expects_ends_.store(true, std::memory_order_relaxed);
    stop_listening();
}

void traffic::stop_listening() {
    std::lock_guard const guard(pending_mutex_);
    pending_->stop_listening();
}

/// Both ends use the connection, so that the peer will not open another one. After the last rank
/// the port is closed.
void traffic::note_joined(peer &known) {
    if (known.note_joined() && num_missing_.fetch_sub(1) == 1) {
        stop_listening();
    }
}

peer &traffic::peer_of(world_rank rank) {
    return peers_.find_or_make(rank, [&] {
        auto host = launcher_.get(rank, host_key);
        return std::make_unique<peer>(rank, host ? host.take() : std::string());
    });
}

link &traffic::add(std::unique_ptr<link> made) {
    std::size_t const before = num_links_.load(std::memory_order_relaxed);
    made->count_in(num_unsettled_);
    links_[before] = std::move(made);
    num_links_.store(before + 1, std::memory_order_release);
    return *links_[before];
}

void traffic::watch(link &open) {
    num_alive_.fetch_add(1, std::memory_order_release);
    watch_descriptor(EPOLL_CTL_ADD, open, false);
}

void traffic::retire(link &over) {
    if (over.fd() < 0) {
        return; // it has never been open
    }
    watch_descriptor(EPOLL_CTL_DEL, over, false);
    num_alive_.fetch_sub(1, std::memory_order_release);
}

link *traffic::sole_link() const {
    if (num_alive_.load(std::memory_order_acquire) != 1) {
        return nullptr;
    }
    auto const found = std::ranges::find_if(links(), [](auto &each) {
        return !each->is_buried() && each->condition() == link::state::good;
    });
    return found == links().end() ? nullptr : found->get();
}

void traffic::watch_descriptor(int operation, link &which, bool for_room) const {
    epoll_event event{};
    event.events = EPOLLIN | (for_room ? EPOLLOUT : 0U);
    event.data.ptr = &which;
    ::epoll_ctl(epoll_.get(), operation, which.fd(), &event);
}

link *traffic::way_to(peer &to) {
    if (link *const open = to.way(); open != nullptr) [[likely]] {
        return open;
    }
    status opened;
    {
        std::lock_guard const guard(links_mutex_);
        if (link *const open = to.way(); open != nullptr) {
            return open;
        }
        opened = has_place() ? open_next_way(to, {})
                             : error(OMPX_ERR_PEER, "other ranks have connected too often");
        if (opened.ok()) {
            link &added = add(std::make_unique<link>(to));
            to.go_by(added);
            return &added;
        }
    }
    lose_(to, opened.failure().message());
    return nullptr;
}

/// Under links_mutex_. An error if no address is left, after `why_not_before`.
status traffic::open_next_way(peer &target, const std::string &why_not_before) {
    auto const text = launcher_.get(target.rank(), card_key);
    card const theirs = text.ok() ? read_card(text.value()) : card{};
    std::vector<in6_addr> const ways = ways_to(theirs, own_card_, local_addresses_);
    std::size_t &next = attempts_[target.rank().index()].next_way;
    std::string why = why_not_before;
    while (next < ways.size()) {
        in6_addr const &way = ways[next++];
        auto started = start_connecting(way, theirs.port, tuning_);
        if (started.ok()) {
            log(log_level::debug, "tcp: connecting to {} at {}", target.name(), to_text(way));
            auto const number = static_cast<std::uint32_t>(target.rank().value());
            opening_->add(number, started.take(),
                          secure::handshake::initiate(secret_, handshake_options(),
                                                      {secure::role::rank, number}),
                          opening_limit);
            return {};
        }
        why = started.failure().message();
    }
    return error(OMPX_ERR_PEER, fmt::format("it cannot be reached at any of its {} addresses ({})",
                                            ways.size(), why.empty() ? "it has none" : why));
}

/// Under links_mutex_. An error if the target cannot be reached.
status traffic::end_opening(secure::opening_connections::result_of_attempt ended, peer &target) {
    using outcome = secure::opening_connections::outcome;
    link &which = *target.way();
    if (ended.how == outcome::proven) {
        tuning_.adapt(ended.socket.get());
        if (which.open(std::move(ended.socket), make_stream(std::move(*ended.proven)))) {
            watch(which);
            if (own_rank_ < target.rank()) {
                static_cast<void>(which.release());
            }
        }
        return {};
    }
    attempts &so_far = attempts_[target.rank().index()];
    if (ended.how == outcome::closed && ++so_far.num_closed < most_closed) {
        --so_far.next_way;
    } else {
        so_far.num_closed = 0;
    }
    status next = open_next_way(target, ended.why);
    if (!next) {
        which.break_off(next.failure().message());
        static_cast<void>(which.bury());
    }
    return next;
}

bool traffic::advance_openings() {
    std::vector<std::pair<peer *, std::string>> lost;
    bool moved = false;
    {
        std::unique_lock const guard(links_mutex_, std::try_to_lock);
        if (!guard.owns_lock()) {
            return false;
        }
        for (auto &each : opening_->advance()) {
            peer &target = *peers_.find(world_rank(static_cast<int>(each.tag)));
            moved = true;
            if (status const ended = end_opening(std::move(each), target); !ended) {
                lost.emplace_back(&target, ended.failure().message());
            }
        }
    }
    for (auto const &[target, why] : lost) {
        lose_(*target, why);
    }
    return moved;
}

/// With a connection that has broken.
void traffic::mend(link &which) {
    if (which.condition() != link::state::broken || !which.bury()) {
        return;
    }
    retire(which);
    peer *const target = which.target();
    if (target != nullptr && !expects_ends_.load(std::memory_order_relaxed)) {
        lose_(*target, which.what_is_wrong());
    }
}

bool traffic::accept_proven() {
    std::vector<secure::pending_connections::proven_connection> proven;
    {
        std::unique_lock const guard(pending_mutex_, std::try_to_lock);
        if (!guard.owns_lock()) {
            return false;
        }
        proven = pending_->advance();
    }
    for (auto &each : proven) {
        admit(std::move(each));
    }
    return !proven.empty();
}

/// A rank of the job has connected.
void traffic::admit(secure::pending_connections::proven_connection from) {
    peer &known = peer_of(world_rank(static_cast<int>(from.proven.peer.number)));
    tuning_.adapt(from.socket.get());
    bool is_adopted = false;
    {
        std::lock_guard const guard(links_mutex_);
        is_adopted = adopt(std::move(from), known);
    }
    if (is_adopted) {
        note_joined(known);
    }
}

bool traffic::adopt(secure::pending_connections::proven_connection from, peer &known) {
    auto const number = from.proven.peer.number;
    if (!has_place()) {
        log(log_level::warn, "tcp: {} connects again and again; not accepted", known.name());
        return false;
    }
    link *const ours = known.way();
    if (ours != nullptr && own_rank_ < known.rank()) {
        // Ours counts. The other end closes this one when ours reaches it.
        watch(add(std::make_unique<link>(std::move(from.socket))));
        return false;
    }
    auto made =
        std::make_unique<link>(std::move(from.socket), known, make_stream(std::move(from.proven)));
    if (ours != nullptr) {
        bool const was_opening = ours->condition() == link::state::opening;
        if (!ours->give_way_to(*made)) {
            return false;
        }
        if (was_opening) {
            opening_->remove(number);
        } else {
            retire(*ours);
        }
    }
    link &added = add(std::move(made));
    watch(added);
    known.go_by(added);
    added.send({.what = kind::welcome}, nullptr, 0, nullptr);
    return true;
}

bool traffic::look_at_descriptors() {
    std::array<epoll_event, 64> events;
    int const count = ::epoll_wait(epoll_.get(), events.data(), events.size(), 0);
    bool moved = false;
    for (int i = 0; i < count; ++i) {
        void *const which = events[static_cast<std::size_t>(i)].data.ptr;
        if (which == &pending_) {
            moved = accept_proven() || moved;
        } else if (which == &opening_) {
            moved = advance_openings() || moved;
        } else {
            moved = static_cast<link *>(which)->receive(*this) || moved;
        }
    }
    return moved;
}

bool traffic::ship_all(bool also_nested) {
    if (num_unsettled_.load(std::memory_order_acquire) == 0) {
        return false;
    }
    bool moved = false;
    for (auto const &each : links()) {
        if (also_nested) {
            each->collect_puts();
        }
        if (each->has_waiting()) {
            moved = each->ship() || moved;
        }
        if (each->condition() == link::state::broken && !each->is_buried()) [[unlikely]] {
            mend(*each);
        }
    }
    return moved;
}

bool traffic::advance() {
    // Counts may get lost.
    std::uint32_t const turn = num_advances_.load(std::memory_order_relaxed) + 1;
    num_advances_.store(turn, std::memory_order_relaxed);
    bool moved = ship_all(turn % every == 0);
    // To read one is quicker than to ask whether it has something, unless others want to write
    // there.
    link *const only = sole_link();
    bool const asks = only == nullptr || only->is_written_by_others() || turn % every == 0;
    moved = (asks ? look_at_descriptors() : only->receive(*this)) || moved;
    return ship_all() || moved; // answers
}

bool traffic::serve() {
    bool const moved = look_at_descriptors();
    return ship_all(true) || moved;
}

bool traffic::arm() {
    for (auto const &each : links()) {
        bool const waits = each->has_waiting() && each->condition() == link::state::good;
        if (each->is_watched_for_room.exchange(waits) != waits) {
            watch_descriptor(EPOLL_CTL_MOD, *each, waits);
        }
    }
    return true;
}

} // namespace diomp::conduit::tcp
