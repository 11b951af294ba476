// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// put, get, memcpy, bandwidth, rate: rank 0 is the origin, rank 1 the target, and the other ranks
// wait in a barrier. signal, channel: ranks 0 and 1 alternate. One buffer on either side, reused in
// all iterations (so it is in the caches as far as possible).
#pragma once

#include "copy_limits.h"
#include "session.h"

#include <atomic>
#include <cstdio>
#include <optional>
#include <sched.h>
#include <thread>

namespace diomp::bench {

struct named_body {
    std::string benchmark;
    std::string operation;
    body run;
    std::size_t transfers = 1; ///< transfers per iteration; rows give the time of one
};

template <typename Library>
void add_rows(session<Library> &with, const std::vector<named_body> &entries, std::size_t size) {
    std::vector<body> bodies;
    bodies.reserve(entries.size());
    for (const named_body &entry : entries) {
        bodies.push_back(entry.run);
    }
    const std::vector<timing> times = with.measure_on_root(bodies);
    for (std::size_t i = 0; i < entries.size(); ++i) {
        with.results.add({entries[i].benchmark, entries[i].operation, "private", 1, size,
                          times[i].divided_by(entries[i].transfers)});
    }
}

/// Runs the body once and checks the data at the target.
template <typename Library>
void check_put(session<Library> &with, const named_body &entry, std::size_t size,
               std::size_t seed) {
    if (with.is_target()) {
        std::memset(with.put_target, 0, size);
    }
    with.library.barrier();
    if (with.is_origin()) {
        entry.run(1);
    }
    with.library.barrier();
    if (with.is_target()) {
        with.require(entry.operation, pattern_error(with.put_target, size, seed));
    }
    with.library.barrier();
}

/// Measures the latency of put + fence, and of a put that is waited for by itself; in turn with
/// them, sample by sample, the two methods to copy into the same memory directly, if chosen.
template <typename Library>
void bench_put(session<Library> &with) {
    Library &library = with.library;
    for (const std::size_t size : transfer_sizes(with.wanted)) {
        const buffer source = private_buffer(size);
        fill_pattern(source.get(), size, size);
        char *const dst = with.put_target;
        const char *const src = source.get();
        const int target = with.target();
        std::vector<named_body> entries;
        if (with.wanted.wants("put")) {
            entries.push_back({"put", "put", single_rank_body([&library, target, dst, src, size] {
                                   library.put(target, dst, src, size);
                                   library.fence(target);
                               })});
        }
        if constexpr (requires { library.put_and_wait(target, dst, src, size); }) {
            if (with.wanted.wants("put_event")) {
                entries.push_back(
                    {"put_event", "put_event", single_rank_body([&library, target, dst, src, size] {
                         library.put_and_wait(target, dst, src, size);
                     })});
            }
        }
        if constexpr (requires { library.remote_ptr(dst, target); }) {
            char *const mapped = library.remote_ptr(dst, target);
            if (with.wanted.wants("memcpy") && mapped != nullptr) {
                entries.push_back({"memcpy", "memcpy_put", single_rank_body([mapped, src, size] {
                                       plain_copy(mapped, src, size);
                                   })});
                if (has_stream_copy) {
                    entries.push_back(
                        {"memcpy", "stream_put", single_rank_body([mapped, src, size] {
                             stream_copy(mapped, src, size);
                         })});
                }
            }
        }
        for (const named_body &entry : entries) {
            check_put(with, entry, size, size);
        }
        add_rows(with, entries, size);
        if (with.is_target()) {
            with.require("put", pattern_error(dst, size, size));
        }
        library.barrier(); // the next benchmark writes there
    }
}

template <typename Library>
void bench_get(session<Library> &with) {
    Library &library = with.library;
    for (const std::size_t size : transfer_sizes(with.wanted)) {
        const buffer destination = private_buffer(size);
        const char *const src = with.get_source;
        char *const dst = destination.get();
        const int target = with.target();
        if (with.is_target()) {
            fill_pattern(with.get_source, size, size + 1);
        }
        library.barrier();
        std::vector<named_body> entries;
        if (with.wanted.wants("get")) {
            entries.push_back({"get", "get", single_rank_body([&library, target, dst, src, size] {
                                   library.get(dst, target, src, size);
                               })});
        }
        if constexpr (requires { library.remote_ptr(with.get_source, target); }) {
            const char *const mapped = library.remote_ptr(with.get_source, target);
            if (with.wanted.wants("memcpy") && mapped != nullptr) {
                entries.push_back({"memcpy", "memcpy_get", single_rank_body([mapped, dst, size] {
                                       plain_copy(dst, mapped, size);
                                   })});
                if (has_stream_copy) {
                    entries.push_back(
                        {"memcpy", "stream_get", single_rank_body([mapped, dst, size] {
                             stream_copy(dst, mapped, size);
                         })});
                }
            }
        }
        for (const named_body &entry : entries) {
            if (with.is_origin()) {
                std::memset(dst, 0, size);
                entry.run(1);
                with.require(entry.operation, pattern_error(dst, size, size + 1));
            }
        }
        add_rows(with, entries, size);
        if (with.is_origin()) {
            with.require("get", pattern_error(dst, size, size + 1));
        }
    }
}

/// Measures a ping-pong of put_signal between rank 0 and rank 1, each of which waits for the
/// other's signal. The row gives half a round trip: from the start of a put until its target has
/// seen the signal.
template <typename Library>
void bench_signal(session<Library> &with) {
    Library &library = with.library;
    if constexpr (requires { library.wait_signal(nullptr, 1); }) {
        const bool participates = library.size() > 1 && library.rank() <= 1;
        const int other = 1 - library.rank();
        auto *const signal =
            reinterpret_cast<std::uint64_t *>(library.symmetric(sizeof(std::uint64_t)));
        std::uint64_t sequence = 0;
        for (const std::size_t size : transfer_sizes(with.wanted)) {
            const buffer source = private_buffer(size);
            fill_pattern(source.get(), size, size + 4);
            std::memset(with.put_target, 0, size);
            const body run = [&](std::uint64_t iterations) {
                library.barrier();
                const stopwatch watch;
                for (std::uint64_t i = 0; participates && i < iterations; ++i) {
                    ++sequence;
                    if (library.rank() == 1) {
                        library.wait_signal(signal, sequence);
                    }
                    library.put_signal(other, with.put_target, source.get(), size, signal,
                                       sequence);
                    if (library.rank() == 0) {
                        library.wait_signal(signal, sequence);
                    }
                }
                return library.max_over_ranks(watch.seconds() / 2);
            };
            const timing time = with.measure_on_all(run);
            if (participates) {
                with.require("signal", pattern_error(with.put_target, size, size + 4));
            }
            if (library.size() > 1) {
                with.results.add({"signal", "signal", "private", 1, size, time});
            }
        }
        library.barrier();
    }
}

/// bench_signal() by channels: each rank receives the other's message, releases it and sends its
/// own.
template <typename Library>
void bench_channel(session<Library> &with) {
    Library &library = with.library;
    if constexpr (requires { typename Library::channels; }) {
        const bool participates = library.size() > 1 && library.rank() <= 1;
        for (const std::size_t size : transfer_sizes(with.wanted)) {
            const buffer source = private_buffer(size);
            fill_pattern(source.get(), size, size + 5);
            std::optional<typename Library::channels> pair;
            if (participates) {
                pair.emplace(1 - library.rank(), size);
            }
            const body run = [&](std::uint64_t iterations) {
                library.barrier();
                const stopwatch watch;
                for (std::uint64_t i = 0; participates && i < iterations; ++i) {
                    if (library.rank() == 0) {
                        pair->send(source.get());
                    }
                    static_cast<void>(pair->receive());
                    pair->release();
                    if (library.rank() == 1) {
                        pair->send(source.get());
                    }
                }
                return library.max_over_ranks(watch.seconds() / 2);
            };
            const timing time = with.measure_on_all(run);
            if (participates) {
                pair->send(source.get());
                with.require("channel", pattern_error(static_cast<const char *>(pair->receive()),
                                                      size, size + 5));
            }
            if (library.size() > 1) {
                with.results.add({"channel", "channel", "private", 1, size, time});
            }
        }
        library.barrier();
    }
}

/// Measures windows of transfers: an iteration starts `window` transfers, by default to different
/// addresses, and completes them together. The row gives the time per transfer.
template <typename Library>
void bench_bandwidth(session<Library> &with) {
    Library &library = with.library;
    const int target = with.target();
    for (const std::size_t size : transfer_sizes(with.wanted)) {
        const std::size_t window = std::clamp<std::size_t>(with.largest_bytes / size, 1, 64);
        const std::size_t places = std::min(window, with.wanted.window_places);
        const buffer local = private_buffer(size * places);
        char *const mine = local.get();
        fill_pattern(mine, size * places, size + 2);
        const named_body puts{
            "bandwidth", "put_window", single_rank_body([&, size, window, places] {
                for (std::size_t i = 0; i < window; ++i) {
                    const std::size_t offset = i % places * size;
                    library.put(target, with.put_target + offset, mine + offset, size);
                }
                library.fence(target);
            }),
            window};
        check_put(with, puts, size * places, size + 2);
        add_rows(with, {puts}, size);
        if constexpr (requires { library.finish_gets(target); }) {
            const named_body gets{
                "bandwidth", "get_window", single_rank_body([&, size, window, places] {
                    for (std::size_t i = 0; i < window; ++i) {
                        const std::size_t offset = i % places * size;
                        library.start_get(mine + offset, target, with.get_source + offset, size);
                    }
                    library.finish_gets(target);
                }),
                window};
            if (with.is_target()) {
                fill_pattern(with.get_source, size * places, size + 3);
            }
            add_rows(with, {gets}, size);
            if (with.is_origin()) {
                with.require("get_window", pattern_error(mine, size * places, size + 3));
            }
        }
        library.barrier();
    }
}

namespace detail {

inline constexpr std::size_t rate_batch = 64;          ///< puts per fence
inline constexpr std::size_t rate_stride_bytes = 4096; ///< between the targets of two threads

/// Returns whether the launcher has bound the rank to fewer cores than it has threads.
inline bool is_bound_to_less_than(int threads) {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    return sched_getaffinity(0, sizeof(allowed), &allowed) == 0 && CPU_COUNT(&allowed) < threads;
}

/// Binds a thread to a core of its own, for ranks that are bound to fewer cores than they have
/// threads. Otherwise the system schedules the threads: on test hosts other ranks share these
/// cores.
inline void bind_thread(int index) {
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<std::size_t>(index % cores), &set);
    sched_setaffinity(0, sizeof(set), &set); // inside a smaller cpuset this fails without effect
}

template <typename Library>
void put_batches(session<Library> &with, int thread, std::uint64_t batches) {
    Library &library = with.library;
    const int target = with.target();
    char *const dst = with.put_target + static_cast<std::size_t>(thread) * rate_stride_bytes;
    std::uint64_t values[rate_batch];
    for (std::size_t i = 0; i < rate_batch; ++i) {
        values[i] = static_cast<std::uint64_t>(thread + 1) << 32 | i;
    }
    for (std::uint64_t batch = 0; batch < batches; ++batch) {
        for (std::size_t i = 0; i < rate_batch; ++i) {
            library.put(target, dst + i * sizeof(values[0]), &values[i], sizeof(values[0]));
        }
        library.fence(target);
    }
}

/// Returns the seconds from when all threads are ready until the last one is done.
template <typename Library>
double run_rate(session<Library> &with, int threads, std::uint64_t batches) {
    std::atomic<int> ready{0};
    std::atomic<bool> go{false};
    std::vector<std::thread> pool;
    pool.reserve(static_cast<std::size_t>(threads));
    const bool binds = is_bound_to_less_than(threads);
    for (int thread = 0; thread < threads; ++thread) {
        pool.emplace_back([&, thread] {
            if (binds) {
                bind_thread(thread);
            }
            ready.fetch_add(1);
            while (!go.load(std::memory_order_acquire)) {
                sched_yield();
            }
            put_batches(with, thread, batches);
        });
    }
    while (ready.load() != threads) {
        sched_yield();
    }
    const stopwatch watch;
    go.store(true, std::memory_order_release);
    for (std::thread &each : pool) {
        each.join();
    }
    return watch.seconds();
}

} // namespace detail

/// Measures 8-byte puts to 64 different words, with a fence after each 64; the row gives the time
/// per put over all threads.
template <typename Library>
void bench_rate(session<Library> &with) {
    for (const int threads : with.wanted.threads) {
        if (!with.library.allows_threads(threads) ||
            static_cast<std::size_t>(threads) * detail::rate_stride_bytes > with.largest_bytes) {
            if (with.library.rank() == 0) {
                std::fprintf(stderr, "rate: not measured with %d threads: %s\n", threads,
                             with.library.allows_threads(threads)
                                 ? "--sizes is too small for them"
                                 : "the library does not allow them");
            }
            continue;
        }
        const body run = [&with, threads](std::uint64_t batches) {
            return detail::run_rate(with, threads, batches);
        };
        const std::vector<timing> times = with.measure_on_root({run});
        const std::size_t puts = detail::rate_batch * static_cast<std::size_t>(threads);
        with.results.add({"rate", "rate", "private", threads, 8, times.front().divided_by(puts)});
        for (int thread = 0; with.is_target() && thread < threads; ++thread) {
            for (std::size_t i = 0; i < detail::rate_batch; ++i) {
                std::uint64_t found = 0;
                std::memcpy(&found,
                            with.put_target +
                                static_cast<std::size_t>(thread) * detail::rate_stride_bytes +
                                i * sizeof(found),
                            sizeof(found));
                if (found != (static_cast<std::uint64_t>(thread + 1) << 32 | i)) {
                    with.library.fail("rate moved wrong data: thread " + std::to_string(thread) +
                                      ", word " + std::to_string(i));
                }
            }
        }
        with.library.barrier();
    }
}

} // namespace diomp::bench
