// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/world.h"

#include "base/log.h"
#include "config/settings.h"
#include "launch/nodes.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace diomp_test {
namespace {

constexpr std::chrono::seconds longest_wait{60};
world *g_ours = nullptr;

template <typename T>
T demand(diomp::result<T> outcome) {
    if (!outcome.ok()) {
        std::fprintf(stderr, "set-up: %s [%s]\n", outcome.failure().message().c_str(),
                     outcome.failure().remedy().c_str());
        std::_Exit(1);
    }
    return outcome.take();
}

} // namespace

world &ours() { return *g_ours; }

world::world() {
    launcher_ = demand(diomp::launch::connect());
    std::vector<std::string> unknown;
    diomp::settings const values = demand(diomp::read_settings(unknown));
    diomp::set_log(values.runtime.log, "[" + std::to_string(rank()) + "] ");
    if (values.transport.node_size > 0) {
        launcher_ = diomp::launch::split_nodes(std::move(launcher_), values.transport.node_size);
    }
    arena_ = demand(diomp::transport::arena::create(
        *launcher_, {0, memory_bytes, diomp::transport::control_bytes_per_rank()}));
    diomp::transport::conduit_options options;
    options.network = values.transport.network;
    options.ucx.workers = values.ucx.workers;
    options.ucx.limits_access = values.ucx.limits_access;
    options.tcp.interfaces = values.tcp.interfaces;
    options.tcp.send_buffer_bytes = values.tcp.send_buffer_bytes;
    options.tcp.congestion = values.tcp.congestion;
    options.tcp.max_connections = values.tcp.max_connections;
    options.encrypts = values.transport.encrypt == diomp::encryption::all;
    options.network_rma = values.transport.network_rma;
    options.native_atomics = values.transport.network_atomics == "native";
    options.device_memory = values.transport.network_device_memory;
    devices_ = std::make_unique<device_ranges>(rank());
    options.make_device_ranges = [this](auto) { return devices_->make(); };
    if (values.messaging.timeout_s > 0) {
        options.dead_peer_timeout_s = values.messaging.timeout_s;
    }
    conduit_ =
        demand(diomp::transport::create(values.transport.conduit, *launcher_, *arena_, options));
    g_ours = this;
    expect_no_message();
}

void world::finish() {
    if (auto *const peers = conduit_->peers(); peers != nullptr) {
        if (auto const closed = peers->close(); !closed) {
            abort(closed.failure().message());
        }
    }
    conduit_.reset();
    if (auto const over = launcher_->finalize(); !over) {
        abort(over.failure().message());
    }
}

std::byte *world::memory_of(int owner) const { return arena_->slot(world_rank{owner}); }

void world::abort(const std::string &why) {
    std::fprintf(stderr, "rank %d: %s\n", rank(), why.c_str());
    std::fflush(nullptr);
    launcher_->abort(1, why);
    std::_Exit(1);
}

void world::expect_no_message() {
    handler_ = [this](const message &each) {
        abort("a message of rank " + std::to_string(each.source.value()) + " that no test expects");
    };
}

int world::poll() {
    return conduit_->poll([this](const message &each) { handler_(each); });
}

void world::wait_until(const std::function<bool()> &condition, const char *what) {
    auto const begin = std::chrono::steady_clock::now();
    conduit_->waits().begin_polling();
    while (!condition()) {
        if (poll() > 0) {
            continue;
        }
        if (core_.should_sleep()) {
            std::this_thread::sleep_for(std::chrono::microseconds(50));
        } else {
            core_.yield(false);
        }
        if (std::chrono::steady_clock::now() - begin > longest_wait) {
            abort(std::string("waited too long for ") + what);
        }
    }
    while (conduit_->waits().end_polling()) {
        conduit_->waits().begin_polling();
        poll();
    }
}

void world::wait(const completion &done) {
    wait_until([&] { return done.is_done(); }, "a transfer");
    if (done.failure.load() != 0) {
        abort("a transfer failed with " + std::to_string(done.failure.load()));
    }
}

void world::send(int peer, handler_id handler, std::span<const std::byte> payload) {
    wait_until(
        [&] {
            return conduit_->messages(world_rank{peer})
                .try_send(world_rank{peer}, handler, payload);
        },
        "room for a message");
}

void world::meet() {
    if (auto const met = launcher_->fence(); !met) {
        abort(met.failure().message());
    }
}

void world::put(int peer, std::byte *remote, const void *source, std::size_t nbytes) {
    if (is_direct(peer)) {
        if (nbytes > 0) {
            std::memcpy(remote, source, nbytes);
        }
        return;
    }
    completion source_free;
    if (auto const started =
            conduit_->rma()->put(world_rank{peer}, reinterpret_cast<std::uintptr_t>(remote), source,
                                 nbytes, source_free);
        !started) {
        abort(started.failure().message());
    }
    wait(source_free);
}

void world::get(int peer, const std::byte *remote, void *destination, std::size_t nbytes) {
    completion done;
    start_get(peer, remote, destination, nbytes, done);
    wait(done);
}

void world::start_get(int peer, const std::byte *remote, void *destination, std::size_t nbytes,
                      completion &done) {
    if (is_direct(peer)) {
        if (nbytes > 0) {
            std::memcpy(destination, remote, nbytes);
        }
        return;
    }
    if (auto const started = conduit_->rma()->get(
            world_rank{peer}, reinterpret_cast<std::uintptr_t>(remote), destination, nbytes, done);
        !started) {
        abort(started.failure().message());
    }
}

void world::flush_all() {
    completion done;
    if (auto const started = start_flush_all(done); !started) {
        abort(started.failure().message());
    }
    wait(done);
}

void world::flush(int peer) {
    completion done;
    if (auto const started = start_flush(peer, done); !started) {
        abort(started.failure().message());
    }
    wait(done);
}

diomp::status world::start_flush(int peer, completion &done) {
    return is_direct(peer) ? diomp::status{} : conduit_->rma()->flush(world_rank{peer}, done);
}

diomp::status world::start_flush_all(completion &done) {
    auto *const rma = conduit_->rma();
    return rma == nullptr ? diomp::status{} : rma->flush_all(done);
}

diomp::result<bool> world::send_long(int peer, handler_id handler,
                                     std::span<const std::byte> payload,
                                     std::span<const std::byte> data, completion &source_free) {
    auto *const longs = conduit_->am_long(world_rank{peer});
    return longs == nullptr
               ? diomp::result<bool>(false)
               : longs->send_long(world_rank{peer}, handler, payload, data, source_free);
}

void world::set_am_long_handler(const diomp::transport::am_long_handler &handle,
                                const diomp::transport::recv_buffer_callback &find_buffer) {
    if (auto *const longs = conduit_->am_long(); longs != nullptr) {
        longs->set_am_long_handler(handle, find_buffer);
    }
}

} // namespace diomp_test
