// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a conduit costs between two ranks, without anything above it: microseconds of a put with its
// flush, of a get and of a message there and back, the rate of transfers in flight. Not a test: for
// tuning. Rank 0 measures, the others serve. conduit_speed [rounds]
#include "transport/world.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sched.h>
#include <thread>

namespace {

using namespace diomp_test;
using clock_type = std::chrono::steady_clock;

double microseconds_since(clock_type::time_point begin) {
    return std::chrono::duration<double, std::micro>(clock_type::now() - begin).count();
}

template <typename Action>
double median_us(int repetitions, Action &&action) {
    std::vector<double> times;
    for (int i = 0; i < repetitions; ++i) {
        auto const begin = clock_type::now();
        action();
        times.push_back(microseconds_since(begin));
    }
    std::nth_element(times.begin(), times.begin() + repetitions / 2, times.end());
    return times[static_cast<std::size_t>(repetitions / 2)];
}

void wait_hot(const completion &done) {
    while (!done.is_done()) {
        ours().poll();
    }
}

std::uint64_t address(const void *at) { return reinterpret_cast<std::uintptr_t>(at); }

void put_and_flush(std::size_t nbytes, const void *source, int count) {
    completion done;
    for (int i = 0; i < count; ++i) {
        static_cast<void>(ours().conduit().rma()->put(
            world_rank{1}, address(ours().memory_of(1)) + static_cast<std::size_t>(i % 2) * nbytes,
            source, nbytes, done));
    }
    static_cast<void>(ours().conduit().rma()->flush(world_rank{1}, done));
    wait_hot(done);
}

void get(std::size_t nbytes, void *destination, int count) {
    completion done;
    for (int i = 0; i < count; ++i) {
        static_cast<void>(ours().conduit().rma()->get(world_rank{1}, address(ours().memory_of(1)),
                                                      destination, nbytes, done));
    }
    wait_hot(done);
}

void measure(int rounds) {
    std::vector<std::byte> buffer(std::size_t{16} << 20, std::byte{1});
    std::printf("%10s %10s %10s %12s %12s\n", "bytes", "put us", "get us", "puts MB/s",
                "gets MB/s");
    for (std::size_t const nbytes :
         {std::size_t{8}, std::size_t{512}, std::size_t{4096}, std::size_t{8192},
          std::size_t{16384}, std::size_t{32768}, std::size_t{65536}, std::size_t{131072},
          std::size_t{262144}, std::size_t{524288}, std::size_t{1} << 20, std::size_t{4} << 20,
          std::size_t{16} << 20}) {
        int const repetitions = std::max(9, static_cast<int>(std::min<std::size_t>(
                                                2000, (std::size_t{64} << 20) / nbytes))) *
                                rounds;
        int const window =
            static_cast<int>(std::clamp<std::size_t>((std::size_t{4} << 20) / nbytes, 2, 1000));
        auto const total = static_cast<double>(nbytes) * window;
        double const put_us =
            median_us(repetitions, [&] { put_and_flush(nbytes, buffer.data(), 1); });
        double const get_us = median_us(repetitions, [&] { get(nbytes, buffer.data(), 1); });
        int const streams = std::max(5, repetitions / window);
        double const puts_us =
            median_us(streams, [&] { put_and_flush(nbytes, buffer.data(), window); });
        double const gets_us = median_us(streams, [&] { get(nbytes, buffer.data(), window); });
        std::printf("%10zu %10.2f %10.2f %12.0f %12.0f\n", nbytes, put_us, get_us, total / puts_us,
                    total / gets_us);
        std::fflush(stdout);
    }
    int const many = 100000;
    double const rate_us = median_us(5, [&] { put_and_flush(8, buffer.data(), many); });
    std::printf("puts of 8 bytes: %.2f M/s\n", many / rate_us);
    for (int num_threads : {2}) {
        double const both_us = median_us(5, [&] {
            std::vector<std::thread> threads;
            for (int i = 0; i < num_threads; ++i) {
                threads.emplace_back([&] { put_and_flush(8, buffer.data(), many); });
            }
            for (auto &thread : threads) {
                thread.join();
            }
        });
        std::printf("from %d threads: %.2f M/s\n", num_threads, num_threads * many / both_us);
    }
}

} // namespace

int main(int argc, char **argv) {
    world one;
    int const rounds = argc > 1 ? std::atoi(argv[1]) : 1;
    int answers = 0;
    bool over = false;
    one.on_message([&](const message &each) {
        if (each.handler == 0) { // there and back
            static_cast<void>(
                one.conduit().messages(each.source).try_send(each.source, 1, each.payload));
        } else if (each.handler == 1) {
            ++answers;
        } else {
            over = true;
        }
    });
    one.meet();
    if (one.size() > 1 && one.rank() == 0) {
        one.conduit().waits().begin_polling();
        measure(rounds);
        std::byte payload[64]{};
        double const message_us = median_us(5000, [&] {
            int const wanted = answers + 1;
            static_cast<void>(
                one.conduit().messages(world_rank{1}).try_send(world_rank{1}, 0, payload));
            while (answers < wanted) {
                one.poll();
            }
        });
        std::printf("message of 64 bytes there and back: %.2f us\n", message_us);
        static_cast<void>(one.conduit().waits().end_polling());
        for (int peer = 1; peer < one.size(); ++peer) {
            one.send(peer, 2, {});
        }
    } else {
        one.conduit().waits().begin_polling();
        while (!over && one.size() > 1) {
            if (one.poll() == 0) {
                ::sched_yield();
            }
        }
        static_cast<void>(one.conduit().waits().end_polling());
    }
    one.finish();
    return 0;
}
