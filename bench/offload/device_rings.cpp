// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls inside target regions that go by requests to the proxy thread of the rank: global host
// memory, which GPUs do not load or store. How many requests a second are taken from one team and
// from 16, how long one takes that has a reply, and a put with signal and a fence beside the same
// calls of the host. One line per figure: what, bytes, value, unit. To the next rank, which is this
// one in a job of one rank.
//
//   bench_device_rings
#include "diomp.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <omp.h>

namespace {

int g_me = 0;
int g_next = 0;

constexpr int threads = 32;
constexpr int max_teams = 16;

void check(int status, const char *what) {
    if (status != OMPX_SUCCESS) {
        std::fprintf(stderr, "bench_device_rings: rank %d: %s: %s\n", g_me, what,
                     ompx_last_error());
        ompx_abort(1);
    }
}

void meet() {
    check(ompx_fence(), "fence");
    check(ompx_barrier(), "barrier");
}

/// Median of the microseconds that `run` takes.
template <typename Run>
double median_us(const Run &run) {
    std::array<double, 7> times{};
    run(); // warm
    for (double &each : times) {
        auto const begin = std::chrono::steady_clock::now();
        run();
        each = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
                   .count();
    }
    std::ranges::sort(times);
    return times[times.size() / 2];
}

/// A line for scripts/gpu-check.sh.
void print_figure(const char *what, std::size_t nbytes, double value, const char *unit) {
    if (g_me == 0) {
        std::printf("figure %s %zu %.3f %s\n", what, nbytes, value, unit);
        std::fflush(stdout);
    }
}

/// Puts of 8 bytes by all threads of `teams` teams, each to a word of its own.
void requests(std::uint64_t *words, int teams) {
    constexpr int each = 500;
    int const other = g_next;
    std::uint64_t done = 0;
    double const took = median_us([&] {
        int status = 0;
        std::uint64_t num_threads = 0;
#pragma omp target teams num_teams(teams) thread_limit(threads) is_device_ptr(words)               \
    map(tofrom : status, num_threads) reduction(| : status) reduction(+ : num_threads)
#pragma omp parallel num_threads(threads) reduction(| : status) reduction(+ : num_threads)
        {
            std::uint64_t *const own = words + omp_get_team_num() * threads + omp_get_thread_num();
            std::uint64_t const value = 7;
            for (int i = 0; i < each; ++i) {
                status |= ompx_put(other, own, &value, sizeof(value));
            }
            num_threads += 1;
        }
        check(status, "puts");
        done = num_threads * each;
    });
    print_figure(teams == 1 ? "ring-requests-one-team" : "ring-requests-16-teams", 8,
                 static_cast<double>(done) / took, "M/s");
    meet();
}

/// One thread: requests with a reply.
void round_trips(std::uint64_t *words) {
    constexpr int times = 2000;
    int const other = g_next;
    for (bool const is_get : {true, false}) {
        double const took = median_us([&] {
            int status = 0;
#pragma omp target is_device_ptr(words) map(tofrom : status)
            for (int i = 0; i < times; ++i) {
                std::uint64_t const one = 1;
                std::uint64_t old = 0;
                status |= is_get ? ompx_get(&old, other, words, sizeof(old))
                                 : ompx_atomic_fetch_add(other, words, &one, &old, OMPX_UINT64);
            }
            check(status, "requests with a reply");
        });
        print_figure(is_get ? "ring-get" : "ring-fetch-add", 8, took / times, "us");
        meet();
    }
}

/// Puts of 8 bytes with a signal, each completed by a fence.
void signals(std::uint64_t *words) {
    constexpr int times = 2000;
    int const other = g_next;
    double const by_region = median_us([&] {
        int status = 0;
#pragma omp target is_device_ptr(words) map(tofrom : status)
        for (int i = 0; i < times; ++i) {
            std::uint64_t const value = 3;
            status |=
                ompx_put_signal(other, words, &value, sizeof(value), words + 1, 1, OMPX_SIGNAL_ADD);
            status |= ompx_fence();
        }
        check(status, "put with signal");
    });
    double const by_host = median_us([&] {
        int status = 0;
        for (int i = 0; i < times; ++i) {
            std::uint64_t const value = 3;
            status |=
                ompx_put_signal(other, words, &value, sizeof(value), words + 1, 1, OMPX_SIGNAL_ADD);
            status |= ompx_fence();
        }
        check(status, "put with signal by the host");
    });
    print_figure("ring-put-signal-fence", 8, by_region / times, "us");
    print_figure("host-put-signal-fence", 8, by_host / times, "us");
    meet();
}

} // namespace

int main() {
    g_me = ompx_rank_num();
    g_next = (g_me + 1) % ompx_num_ranks();
    constexpr std::size_t num_words = std::size_t{max_teams} * threads;
    auto *const words = static_cast<std::uint64_t *>(
        ompx_alloc(num_words * sizeof(std::uint64_t), 0, OMPX_MEM_SYMMETRIC));
    if (words == nullptr) {
        check(OMPX_ERR_NOMEM, "no host memory");
    }
    std::fill_n(words, num_words, 0);
    int on_host = 1;
#pragma omp target map(from : on_host)
    on_host = omp_is_initial_device();
    check(on_host == 0 ? OMPX_SUCCESS : OMPX_ERR_STATE, "target regions run on the host");
    meet();
    round_trips(words);
    signals(words);
    requests(words, 1);
    requests(words, max_teams);
    return 0;
}
