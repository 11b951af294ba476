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
/// How long freeze() waits for a lock. A call of UCX is shorter, unless a signal handler has
/// interrupted it in the thread that waits.
constexpr std::chrono::seconds freeze_limit{1};

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
                                                 const conduit_options &options, arrivals &arrived,
                                                 loss_sink lose) {
    std::unique_ptr<traffic> made(
        new traffic(static_cast<std::size_t>(launcher.info().size), std::move(lose)));
    auto process = context::create(launcher, window, options);
    DIOMP_TRY(process);
    made->context_ = process.take();
    made->epoll_ = unique_fd(::epoll_create1(EPOLL_CLOEXEC));
    if (!made->epoll_.valid()) {
        return system_error("epoll_create1", errno);
    }
    made->workers_ = std::vector<std::atomic<worker *>>(
        static_cast<std::size_t>(choose_num_workers(options.ucx_workers)));
    DIOMP_TRY(made->add_worker(0));
    auto receiving =
        incoming::create(made->first_worker(), arrived, [traffic = made.get()](world_rank rank) {
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
        for (auto const &known : peers_.all()) {
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
    if (answer.nbytes <= small_bytes && answer.ends.are_host()) {
        std::memcpy(to.append(record_kind::get_reply, answer.value, answer.nbytes), source,
                    answer.nbytes);
        to.is_urgent = true;
    } else {
        to.send_bulk(record_kind::get_reply, answer.value, source, answer.nbytes, nullptr,
                     answer.ends);
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
    auto const devices = context_->scopes().enter();
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
        lose_(*lost, "its connection is lost");
    }
    return moved;
}

std::string traffic::fail(peer &lost, const std::string &why) {
    std::string sentence = lost.fail(why);
    if (!sentence.empty()) {
        lost.is_broken.store(true);
        for_each_worker([&](worker &each) {
            std::lock_guard const guard(each.mutex);
            if (channel *const to = lost.find_channel(each); to != nullptr) {
                to->abandon();
            }
        });
    }
    return sentence;
}

void traffic::ping(peer &silent) {
    worker &first = first_worker();
    std::lock_guard const guard(first.mutex);
    send_reply(first, {silent.rank(), record_kind::ping, 0, 0, 0, 0, {}});
    ship_open(first);
}

bool traffic::arm() {
    bool is_quiet = true;
    auto const devices = context_->scopes().enter();
    for_each_worker([&](worker &each) {
        std::lock_guard const guard(each.mutex);
        is_quiet = is_quiet && each.open_channels.empty() && each.arm();
    });
    return is_quiet;
}

// All calls of UCX are made under these locks.
void traffic::freeze() {
    auto const end = clock::now() + freeze_limit;
    auto const lock_for_good = [end](std::mutex &mutex) {
        while (!mutex.try_lock() && clock::now() < end) {
            std::this_thread::sleep_for(std::chrono::microseconds(50));
        }
    };
    lock_for_good(workers_mutex_);
    for_each_worker([&](worker &each) { lock_for_good(each.mutex); });
}

} // namespace diomp::conduit::ucx
