// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/ucx/iface.h"

#include "base/log.h"
#include "transport/arena.h"
#include "transport/ucx/listener_filter.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/epoll.h>
#include <thread>

namespace diomp::transport::ucx {
namespace {

using clock = std::chrono::steady_clock;

/// Rounds of progress per round of a worker without operations in flight.
constexpr std::uint64_t idle_interval = 64;
/// Time limit of freeze() per lock. Calls of UCX are shorter, unless a signal handler of the
/// calling thread has interrupted one.
constexpr std::chrono::seconds freeze_limit{1};

int choose_num_workers(int requested) {
    int const cores = static_cast<int>(std::thread::hardware_concurrency());
    return std::clamp(requested > 0 ? requested : std::min(4, cores), 1, iface::max_workers);
}

/// Numbers threads in the order of their first transfer.
std::size_t thread_index() {
    static std::atomic<std::size_t> next{0};
    thread_local std::size_t const number = next.fetch_add(1, std::memory_order_relaxed);
    return number;
}

} // namespace

result<std::unique_ptr<iface>> iface::create(launch::launcher &launcher, const arena &arena,
                                             const conduit_options &options, arrivals &arrived,
                                             peer_failure_handler on_peer_failure) {
    std::unique_ptr<iface> made(
        new iface(static_cast<std::size_t>(launcher.info().size), std::move(on_peer_failure)));
    auto ctx = context::create(launcher, arena, options);
    DIOMP_TRY(ctx);
    made->context_ = ctx.take();
    made->epoll_ = unique_fd(::epoll_create1(EPOLL_CLOEXEC));
    if (!made->epoll_.valid()) {
        return system_error("epoll_create1", errno);
    }
    made->workers_ = std::vector<std::atomic<worker *>>(
        static_cast<std::size_t>(choose_num_workers(options.ucx.workers)));
    DIOMP_TRY(made->add_worker(0));
    auto receiving =
        am_receiver::create(made->first_worker(), arrived, [iface = made.get()](world_rank rank) {
            return iface->find_peer(rank);
        });
    DIOMP_TRY(receiving);
    made->am_receiver_ = receiving.take();
    DIOMP_TRY(made->context_->publish(made->first_worker().handle));
    return made;
}

iface::~iface() {
    for_each_worker([&](worker &each) {
        std::lock_guard const guard(each.mutex);
        for (auto const &known : peers_.all()) {
            known->close_endpoint(each);
        }
    });
    for_each_worker([](worker &each) { delete &each; });
}

status iface::add_worker(std::size_t index) {
    auto const listening = listening_sockets();
    auto made = worker::create(*context_, static_cast<std::uint16_t>(index));
    DIOMP_TRY(made);
    context_->limit_sources(made.value()->handle, listening);
    epoll_event event{};
    event.events = EPOLLIN;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, made.value()->event_fd, &event) != 0) {
        return system_error("epoll_ctl", errno);
    }
    workers_[index].store(made.take().release(), std::memory_order_release);
    return {};
}

worker &iface::own_worker() {
    std::size_t const index = thread_index() % workers_.size();
    worker *own = workers_[index].load(std::memory_order_acquire);
    if (own == nullptr) [[unlikely]] {
        std::lock_guard const guard(workers_mutex_);
        own = workers_[index].load(std::memory_order_acquire);
        if (own == nullptr) {
            if (status const added = add_worker(index); !added) {
                log(log_level::info, "{}: threads share a worker", added.failure().message());
                return first_worker();
            }
            own = workers_[index].load(std::memory_order_acquire);
        }
    }
    return *own;
}

void iface::send_reply(worker &from, const reply &response) {
    peer &target = peer_of(response.to);
    if (target.is_failed()) {
        return;
    }
    auto connected = target.endpoint_of(from);
    if (!connected) {
        log(log_level::error, "{}", connected.failure().message());
        from.mark_broken(target);
        return;
    }
    endpoint &to = *connected.value();
    if (response.kind != record_kind::get_reply) {
        to.packets.append(response.kind, response.value, 0, 0, response.endpoint);
        to.packets.transmit_with_progress();
        return;
    }
    const auto *const source = reinterpret_cast<const std::byte *>(response.address);
    if (response.nbytes <= max_packed_bytes && response.kinds.are_host()) {
        std::memcpy(to.packets.append(record_kind::get_reply, response.value, response.nbytes),
                    source, response.nbytes);
        to.packets.transmit_with_progress();
    } else {
        to.send_long(record_kind::get_reply, response.value, source, response.nbytes, nullptr,
                     response.kinds);
    }
}

bool iface::advance(bool all) {
    bool moved = false;
    std::vector<peer *> broken;
    auto const device_guard = context_->device_ctx().bind_to_thread();
    for_each_worker([&](worker &each) {
        std::unique_lock const lock(each.mutex, std::try_to_lock);
        if (!lock.owns_lock()) {
            return;
        }
        if (each.index > 0 && !all && each.num_requests == 0 && each.pending_packets.empty() &&
            ++each.num_rounds % idle_interval != 0) {
            return;
        }
        moved = each.progress() || moved;
        if (each.index == 0) {
            auto &replies = am_receiver_->replies();
            for (std::size_t i = 0; i < replies.size(); ++i) {
                send_reply(each, replies[i]);
            }
            replies.clear();
        }
        each.transmit_due_packets();
        broken.insert(broken.end(), each.broken.begin(), each.broken.end());
        each.broken.clear();
    });
    for (peer *const lost : broken) {
        on_peer_failure_(*lost, "its connection is lost");
    }
    return moved;
}

std::string iface::fail(peer &lost, const std::string &why) {
    std::string sentence = lost.fail(why);
    if (!sentence.empty()) {
        lost.is_broken.store(true);
        for_each_worker([&](worker &each) {
            std::lock_guard const guard(each.mutex);
            if (endpoint *const to = lost.find_endpoint(each); to != nullptr) {
                to->destroy();
            }
        });
    }
    return sentence;
}

void iface::ping(peer &silent) {
    worker &first = first_worker();
    std::lock_guard const guard(first.mutex);
    send_reply(first, {silent.rank(), record_kind::ping, 0, 0, 0, 0, {}});
    first.transmit_due_packets();
}

bool iface::arm() {
    bool is_idle = true;
    auto const device_guard = context_->device_ctx().bind_to_thread();
    for_each_worker([&](worker &each) {
        std::lock_guard const guard(each.mutex);
        is_idle = is_idle && each.pending_packets.empty() && each.arm();
    });
    return is_idle;
}

// All calls of UCX are made under the locks that are taken here.
void iface::freeze() {
    auto const end = clock::now() + freeze_limit;
    auto const lock_until_exit = [end](std::mutex &mutex) {
        while (!mutex.try_lock() && clock::now() < end) {
            std::this_thread::sleep_for(std::chrono::microseconds(50));
        }
    };
    lock_until_exit(workers_mutex_);
    for_each_worker([&](worker &each) { lock_until_exit(each.mutex); });
}

} // namespace diomp::transport::ucx
