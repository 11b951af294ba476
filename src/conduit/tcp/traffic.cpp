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
#include <sys/random.h>
#include <sys/socket.h>

namespace diomp::conduit::tcp {
namespace {

/// Of the advances that read one connection without asking whether it has something, every so often
/// one looks at all descriptors: somebody may want to connect.
constexpr std::uint32_t every = 64;
/// How long one address may take to answer.
constexpr std::chrono::seconds opening_limit{3};
/// Connections of strangers that may wait beside those of a job's ranks.
constexpr std::size_t most_strangers = 64;

result<std::string> new_cookie() {
    constexpr char const *digits = "0123456789abcdef";
    std::array<unsigned char, sizeof(greeting::cookie) / 2> bytes;
    if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
        return system_error("asking for random numbers", errno);
    }
    std::string text;
    for (unsigned const each : bytes) {
        text += digits[each >> 4];
        text += digits[each & 15];
    }
    return text;
}

} // namespace

traffic::traffic(launch::launcher &launcher, const window &window, tuning how, arrivals &arrived,
                 loss_sink lose)
    : launcher_(launcher), own_rank_(launcher.info().rank), arrived_(arrived),
      lose_(std::move(lose)), tuning_(std::move(how)),
      slot_begin_(reinterpret_cast<std::uint64_t>(window.slot(launcher.info().rank))),
      slot_bytes_(window.slot_bytes()), peers_(static_cast<std::size_t>(launcher.info().size)),
      links_(2 * peers_.num_ranks() + most_strangers), next_way_(peers_.num_ranks()) {}

traffic::~traffic() = default;

result<std::unique_ptr<traffic>> traffic::create(launch::launcher &launcher, const window &window,
                                                 const conduit_options &options, arrivals &arrived,
                                                 loss_sink lose) {
    auto how = tuning::create(options.tcp_send_buffer_bytes, options.tcp_congestion);
    DIOMP_TRY(how);
    std::unique_ptr<traffic> made(
        new traffic(launcher, window, how.take(), arrived, std::move(lose)));
    auto addresses = own_addresses(options.tcp_interfaces);
    DIOMP_TRY(addresses);
    made->own_card_.node = launch::node_identity();
    made->own_card_.addresses = addresses.take();
    auto listener = listen(made->own_card_.port, made->tuning_);
    DIOMP_TRY(listener);
    made->listener_ = listener.take();
    made->epoll_ = unique_fd(::epoll_create1(EPOLL_CLOEXEC));
    epoll_event event{};
    event.events = EPOLLIN;
    if (!made->epoll_.valid() ||
        ::epoll_ctl(made->epoll_.get(), EPOLL_CTL_ADD, made->listener_.get(), &event) != 0) {
        return system_error("epoll", errno);
    }
    DIOMP_TRY(launcher.put(card_key, write_card(made->own_card_)));
    DIOMP_TRY(launcher.put(host_key, launcher.info().host));
    if (launcher.info().rank == world_rank(0)) {
        auto cookie = new_cookie();
        DIOMP_TRY(cookie);
        DIOMP_TRY(launcher.put(cookie_key, cookie.value()));
    }
    DIOMP_TRY(launcher.fence());
    auto cookie = launcher.get(world_rank(0), cookie_key);
    DIOMP_TRY(cookie);
    if (cookie.value().size() != sizeof(greeting::cookie)) {
        return error(OMPX_ERR_SYSTEM, "the launcher has changed what rank 0 published");
    }
    made->greeting_.rank = static_cast<std::uint32_t>(launcher.info().rank.value());
    std::memcpy(made->greeting_.cookie, cookie.value().data(), sizeof(greeting::cookie));
    return made;
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
    num_alive_.fetch_add(1, std::memory_order_release);
    watch_descriptor(EPOLL_CTL_ADD, *links_[before], false);
    return *links_[before];
}

/// In a place that a stranger has left, if there is one; nowhere if all are taken.
void traffic::add_accepted(unique_fd fd) {
    if (!vacant_.empty() && vacant_.back()->reuse(fd)) {
        num_alive_.fetch_add(1, std::memory_order_release);
        watch_descriptor(EPOLL_CTL_ADD, *vacant_.back(), false);
        vacant_.pop_back();
    } else if (has_place()) {
        add(std::make_unique<link>(std::move(fd)));
    }
}

void traffic::retire(link &over) {
    watch_descriptor(EPOLL_CTL_DEL, over, false);
    num_alive_.fetch_sub(1, std::memory_order_release);
}

link *traffic::sole_link() const {
    if (num_alive_.load(std::memory_order_acquire) != 1) {
        return nullptr;
    }
    auto const found = std::ranges::find_if(links(), [](auto &each) { return !each->is_buried(); });
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
    std::string why = "strangers hold too many connections to this rank";
    {
        std::lock_guard const guard(links_mutex_);
        if (link *const open = to.way(); open != nullptr) {
            return open;
        }
        // Any descriptor will do: open_next_way() puts the right one in its place.
        bool const is_held = own_rank_ > to.rank();
        auto made = std::make_unique<link>(unique_fd(), to, greeting_, is_held, &tuning_);
        if (has_place()) {
            if (open_next_way(*made, to)) {
                link &added = add(std::move(made));
                to.go_by(added);
                return &added;
            }
            why = made->what_is_wrong();
        }
    }
    lose_(to, why);
    return nullptr;
}

bool traffic::open_next_way(link &which, peer &target) {
    auto const text = launcher_.get(target.rank(), card_key);
    card const theirs = text.ok() ? read_card(text.value()) : card{};
    std::vector<in6_addr> const ways = ways_to(theirs, own_card_);
    std::size_t &next = next_way_[target.rank().index()];
    std::string why = which.what_is_wrong();
    while (next < ways.size()) {
        in6_addr const &way = ways[next++];
        auto started = start_connecting(way, theirs.port, tuning_);
        if (started.ok()) {
            log(log_level::debug, "tcp: connecting to {} at {}", target.name(), to_text(way));
            which.start_again(started.take());
            return true;
        }
        why = started.failure().message();
    }
    which.break_off(fmt::format("it cannot be reached at any of its {} addresses ({})", ways.size(),
                                why.empty() ? "it has none" : why));
    return false;
}

/// With what is not good, or takes too long to open.
void traffic::mend(link &which) {
    peer *const target = which.target();
    {
        std::lock_guard const guard(links_mutex_);
        if (which.condition() == link::state::unopened && target != nullptr) {
            if (open_next_way(which, *target)) {
                watch_descriptor(EPOLL_CTL_ADD, which, false);
                return;
            }
        }
    }
    if (which.condition() != link::state::broken || !which.bury()) {
        return;
    }
    retire(which);
    if (target == nullptr) {
        std::lock_guard const guard(links_mutex_);
        vacant_.push_back(&which);
    } else if (!expects_ends_.load(std::memory_order_relaxed)) {
        lose_(*target, which.what_is_wrong());
    }
}

void traffic::accept_all() {
    for (;;) {
        unique_fd next(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (!next.valid()) {
            return;
        }
        tuning_.adapt(next.get());
        std::lock_guard const guard(links_mutex_);
        add_accepted(std::move(next));
    }
}

bool traffic::look_at_descriptors() {
    std::array<epoll_event, 64> events;
    int const count = ::epoll_wait(epoll_.get(), events.data(), events.size(), 0);
    bool moved = false;
    for (int i = 0; i < count; ++i) {
        auto *const which = static_cast<link *>(events[static_cast<std::size_t>(i)].data.ptr);
        if (which == nullptr) {
            accept_all();
            moved = true;
        } else {
            moved = which->receive(*this) || moved;
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
        if (each->condition() != link::state::good && !each->is_buried()) [[unlikely]] {
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

bool traffic::look_at_openings() {
    auto const now = std::chrono::steady_clock::now();
    bool is_any_opening = false;
    for (auto const &each : links()) {
        bool const is_strange = each->awaits_greeting();
        if ((each->is_open() && !is_strange) || each->condition() == link::state::broken) {
            continue;
        }
        is_any_opening = true;
        if (now - each->opening_since.load() > opening_limit) {
            if (is_strange) {
                each->break_off("nobody has said who it is");
            } else {
                each->give_up_opening();
            }
            mend(*each);
        }
    }
    return is_any_opening;
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
