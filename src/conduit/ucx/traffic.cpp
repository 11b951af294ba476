// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "conduit/ucx/traffic.h"

#include "base/log.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/epoll.h>
#include <thread>

namespace diomp::conduit::ucx {
namespace {

using clock = std::chrono::steady_clock;

/// Small puts wait so long for company before progress sends them.
constexpr std::chrono::microseconds gather_time{50};
/// Rounds of worker 0 for one of a worker that has nothing under way.
constexpr std::uint64_t idle_interval = 64;

int choose_num_workers(int wish) {
    int const cores = static_cast<int>(std::thread::hardware_concurrency());
    return std::clamp(wish > 0 ? wish : std::min(4, cores), 1, traffic::max_workers);
}

/// Threads in the order of their first transfer.
std::size_t number_of_this_thread() {
    static std::atomic<std::size_t> next{0};
    thread_local std::size_t const number = next.fetch_add(1, std::memory_order_relaxed);
    return number;
}

} // namespace

result<std::unique_ptr<traffic>> traffic::create(launch::launcher &launcher, const window &window,
                                                 const conduit_options &options) {
    std::unique_ptr<traffic> made(new traffic);
    auto process = context::create(launcher, window, options);
    DIOMP_TRY(process);
    made->context_ = process.take();
    made->epoll_ = unique_fd(::epoll_create1(EPOLL_CLOEXEC));
    if (!made->epoll_.valid()) {
        return system_error("epoll_create1", errno);
    }
    made->peers_ =
        std::make_unique<std::atomic<peer *>[]>(static_cast<std::size_t>(launcher.info().size));
    made->watch_ = std::make_unique<watch>(options.dead_peer_timeout_s);
    made->workers_ = std::vector<std::atomic<worker *>>(
        static_cast<std::size_t>(choose_num_workers(options.ucx_workers)));
    DIOMP_TRY(made->add_worker(0));
    auto receiving =
        incoming::create(made->first_worker(), [traffic = made.get()](world_rank rank) {
            return traffic->find_peer(rank);
        });
    DIOMP_TRY(receiving);
    made->incoming_ = receiving.take();
    DIOMP_TRY(made->context_->publish(made->first_worker().handle));
    return made;
}

traffic::~traffic() {
    for_each_worker([&](worker &each) {
        std::lock_guard const guard(each.mutex);
        for (auto const &known : known_peers_) {
            known->drop_channel(each);
        }
    });
    for_each_worker([](worker &each) { delete &each; });
}

status traffic::add_worker(std::size_t index) {
    auto made = worker::create(*context_, static_cast<std::uint16_t>(index));
    DIOMP_TRY(made);
    epoll_event event{};
    event.events = EPOLLIN;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, made.value()->event_fd, &event) != 0) {
        return system_error("epoll_ctl", errno);
    }
    workers_[index].store(made.take().release(), std::memory_order_release);
    return {};
}

worker &traffic::own_worker() {
    std::size_t const index = number_of_this_thread() % workers_.size();
    worker *own = workers_[index].load(std::memory_order_acquire);
    if (own == nullptr) [[unlikely]] {
        std::lock_guard const guard(workers_mutex_);
        own = workers_[index].load(std::memory_order_acquire);
        if (own == nullptr) {
            if (status const added = add_worker(index); !added) {
                log(log_level::info, "{}: threads share one", added.failure().message());
                return first_worker();
            }
            own = workers_[index].load(std::memory_order_acquire);
        }
    }
    return *own;
}

peer &traffic::peer_of(world_rank rank) {
    peer *known = find_peer(rank);
    if (known == nullptr) [[unlikely]] {
        std::lock_guard const guard(peers_mutex_);
        known = find_peer(rank);
        if (known == nullptr) {
            known_peers_.push_back(std::make_unique<peer>(rank, workers_.size()));
            known = known_peers_.back().get();
            peers_[rank.index()].store(known, std::memory_order_release);
        }
    }
    return *known;
}

std::vector<peer *> traffic::spoken_to() const {
    std::lock_guard const guard(peers_mutex_);
    std::vector<peer *> found;
    found.reserve(known_peers_.size());
    for (auto const &known : known_peers_) {
        found.push_back(known.get());
    }
    return found;
}

void traffic::mark_broken(worker &owner, peer &lost) {
    if (!lost.is_broken.exchange(true)) {
        owner.broken.push_back(&lost);
    }
}

void traffic::send_reply(worker &from, const reply &answer) {
    peer &target = peer_of(answer.to);
    if (target.is_failed()) {
        return;
    }
    auto connected = target.channel_of(from);
    if (!connected) {
        log(log_level::error, "{}", connected.failure().message());
        mark_broken(from, target);
        return;
    }
    channel &to = *connected.value();
    if (answer.kind != record_kind::get_reply) {
        to.append(answer.kind, answer.value, 0, 0, answer.channel);
        to.is_urgent = true;
        return;
    }
    const auto *const source = reinterpret_cast<const std::byte *>(answer.address);
    if (answer.nbytes <= small_bytes) {
        std::memcpy(to.append(record_kind::get_reply, answer.value, answer.nbytes), source,
                    answer.nbytes);
        to.is_urgent = true;
    } else {
        to.send_bulk(record_kind::get_reply, answer.value, source, answer.nbytes, nullptr);
    }
}

void traffic::ship_open(worker &from) {
    if (from.open_channels.empty()) {
        return;
    }
    auto const now = clock::now();
    std::erase_if(from.open_channels, [&](channel *each) {
        if (each->open != nullptr && !each->is_urgent) {
            if (!each->open_was_seen) {
                each->open_was_seen = true;
                each->open_since = now;
            }
            if (now - each->open_since < gather_time) {
                return false;
            }
        }
        each->ship();
        each->is_listed = false;
        return true;
    });
}

bool traffic::advance(bool all) {
    bool moved = false;
    std::vector<peer *> broken;
    for_each_worker([&](worker &each) {
        std::unique_lock const lock(each.mutex, std::try_to_lock);
        if (!lock.owns_lock()) {
            return;
        }
        if (each.index > 0 && !all && each.num_requests == 0 && each.open_channels.empty() &&
            ++each.num_rounds % idle_interval != 0) {
            return;
        }
        moved = each.progress() || moved;
        if (each.index == 0) {
            auto &replies = incoming_->replies();
            for (std::size_t i = 0; i < replies.size(); ++i) {
                send_reply(each, replies[i]);
            }
            replies.clear();
        }
        ship_open(each);
        broken.insert(broken.end(), each.broken.begin(), each.broken.end());
        each.broken.clear();
    });
    for (peer *const lost : broken) {
        give_up(*lost, "its connection is lost");
    }
    return moved;
}

void traffic::give_up(peer &lost, const std::string &why) {
    std::string const sentence = lost.fail(why);
    if (sentence.empty()) {
        return;
    }
    lost.is_broken.store(true);
    for_each_worker([&](worker &each) {
        std::lock_guard const guard(each.mutex);
        if (channel *const to = lost.find_channel(each); to != nullptr) {
            to->abandon();
        }
    });
    std::lock_guard const guard(sink_mutex_);
    if (failure_sink_) {
        failure_sink_(lost.rank(), sentence);
    } else {
        log(log_level::debug, "{}", sentence);
    }
}

void traffic::report_failures_to(failure_sink sink) {
    std::lock_guard const guard(sink_mutex_);
    failure_sink_ = std::move(sink);
}

std::string traffic::describe_outstanding() const { return describe_awaited(spoken_to()); }

int traffic::watch_peers() {
    worker &first = first_worker();
    auto const peers = [&] {
        auto const known = spoken_to();
        return std::vector<watched_peer *>(known.begin(), known.end());
    };
    auto const ping = [&](watched_peer &silent) {
        std::lock_guard const guard(first.mutex);
        send_reply(first, {static_cast<peer &>(silent).rank(), record_kind::ping, 0, 0, 0, 0});
        ship_open(first);
    };
    auto const lose = [&](watched_peer &silent) {
        give_up(static_cast<peer &>(silent), fmt::format("it has not answered for {:g} s",
                                                         context_->options().dead_peer_timeout_s));
    };
    return watch_->look(peers, ping, lose);
}

bool traffic::arm() {
    bool is_quiet = true;
    for_each_worker([&](worker &each) {
        std::lock_guard const guard(each.mutex);
        is_quiet = is_quiet && each.open_channels.empty() && each.arm();
    });
    return is_quiet;
}

} // namespace diomp::conduit::ucx
