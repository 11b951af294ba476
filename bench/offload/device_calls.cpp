// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls inside target regions, on the default device: how long a put of 8 bytes with its signal
// takes to the other side, what teams put per second beside a copy by the driver, and how many
// atomic additions a second reach a rank. One line per figure: what, bytes, value, unit. "between":
// one way. "team-put": within a region, without its start and end; "driver-copy" has both.
//
//   bench_device_calls              two teams of one region, and puts to the next rank
//   bench_device_calls --together   two ranks: also between their regions, which must be able to
//                                   run at the same time (several ranks on a GPU: MPS)
#include "diomp.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <omp.h>

namespace {

int g_me = 0;
int g_next = 0;
int g_device = 0;

constexpr std::size_t max_bytes = std::size_t{64} << 20;
constexpr int threads = 512;
constexpr int max_teams = 264;

[[noreturn]] void fail(const char *what) {
    std::fprintf(stderr, "bench_device_calls: rank %d: %s: %s\n", g_me, what, ompx_last_error());
    ompx_abort(1);
}

void check(int status, const char *what) {
    if (status != OMPX_SUCCESS) {
        fail(what);
    }
}

void meet() {
    check(ompx_fence(), "fence");
    check(ompx_barrier(), "barrier");
}

double now_us() {
    return std::chrono::duration<double, std::micro>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

/// Median of the times that `run` takes.
template <typename Run>
double median_us(const Run &run) {
    constexpr int samples = 7;
    double times[samples];
    run(); // warm
    for (double &each : times) {
        double const begin = now_us();
        run();
        each = now_us() - begin;
    }
    for (int i = 1; i < samples; ++i) {
        for (int j = i; j > 0 && times[j] < times[j - 1]; --j) {
            double const lower = times[j];
            times[j] = times[j - 1];
            times[j - 1] = lower;
        }
    }
    return times[samples / 2];
}

/// A line for scripts/gpu-check.sh.
void print_figure(const char *what, std::size_t nbytes, double value, const char *unit) {
    std::printf("figure %s %zu %.3f %s\n", what, nbytes, value, unit);
    std::fflush(stdout);
}

template <typename T>
T *allocate(std::size_t count) {
    auto *const made = static_cast<T *>(
        ompx_target_alloc(count * sizeof(T), g_device, OMPX_SYMMETRIC_MEM_ALLOC_VALUE_));
    if (made == nullptr) {
        fail("no memory on the device");
    }
    return made;
}

void clear(std::uint64_t *signals) {
#pragma omp target is_device_ptr(signals)
    for (int i = 0; i < 64; ++i) {
        signals[i] = 0;
    }
    meet();
}

/// One side of `rounds` exchanges of 8 bytes and a signal: puts to `other`, and waits for it.
#pragma omp begin declare target
int exchange(int other, bool begins, std::uint64_t *own_signal, std::uint64_t *other_signal,
             char *target, const char *source, std::uint64_t rounds) {
    int status = 0;
    for (std::uint64_t round = 1; round <= rounds; ++round) {
        if (!begins) {
            status |= ompx_signal_wait(own_signal, OMPX_CMP_GE, round);
        }
        status |= ompx_put_signal(other, target, source, 8, other_signal, round, OMPX_SIGNAL_SET);
        if (begins) {
            status |= ompx_signal_wait(own_signal, OMPX_CMP_GE, round);
        }
    }
    return status;
}
#pragma omp end declare target

/// Two teams of one region, each with its own signal in the memory of this rank.
void between_teams(std::uint64_t *signals, char *target, const char *source) {
    constexpr std::uint64_t rounds = 5000;
    int const self = g_me;
    double const took = [&] {
        double best = 1e30;
        for (int i = 0; i < 3; ++i) {
            clear(signals);
            int status = 0;
            double const begin = now_us();
#pragma omp target teams num_teams(2) thread_limit(32) is_device_ptr(signals, target, source)      \
    map(tofrom : status) reduction(| : status)
            {
                bool const first = omp_get_team_num() == 0;
                if (omp_get_num_teams() == 2) {
                    status |= exchange(self, first, first ? signals : signals + 32,
                                       first ? signals + 32 : signals, target, source, rounds);
                }
            }
            double const end = now_us();
            check(status, "exchange between teams");
            best = end - begin < best ? end - begin : best;
        }
        return best;
    }();
    if (g_me == 0) {
        print_figure("put-signal-between-teams", 8, took / (2 * rounds), "us");
    }
    meet();
}

/// Regions of ranks 0 and 1.
void between_ranks(std::uint64_t *signals, char *target, const char *source) {
    constexpr std::uint64_t rounds = 20000;
    double best = 1e30;
    int const other = g_next;
    bool const first = g_me == 0;
    for (int i = 0; i < 3; ++i) {
        clear(signals);
        int status = 0;
        double const begin = now_us();
#pragma omp target is_device_ptr(signals, target, source) map(tofrom : status)
        status = exchange(other, first, signals, signals, target, source, rounds);
        double const end = now_us();
        check(status, "exchange between ranks");
        best = end - begin < best ? end - begin : best;
        meet();
    }
    if (g_me == 0) {
        print_figure("put-signal-between-ranks", 8, best / (2 * rounds), "us");
    }
}

int teams_for(std::size_t nbytes) {
    constexpr std::size_t least = 16384; // bytes of a team
    std::size_t const wanted = nbytes / least;
    return wanted < 1 ? 1 : wanted > max_teams ? max_teams : static_cast<int>(wanted);
}

/// Each team puts its part `times` times. The last part ends at nbytes.
void put_by_teams(char *target, const char *source, std::size_t nbytes, int times) {
    int const other = g_next;
    int const teams = teams_for(nbytes);
    int status = 0;
#pragma omp target teams num_teams(teams) thread_limit(threads) is_device_ptr(target, source)      \
    map(tofrom : status) reduction(| : status)
#pragma omp parallel num_threads(threads) reduction(| : status)
    {
        std::size_t const num = static_cast<std::size_t>(omp_get_num_teams());
        std::size_t const team = static_cast<std::size_t>(omp_get_team_num());
        std::size_t const each = nbytes / num / 16 * 16;
        std::size_t const begin = team * each;
        std::size_t const count = team + 1 == num ? nbytes - begin : each;
        for (int i = 0; i < times; ++i) {
            status |= ompx_team_put(other, target + begin, source + begin, count);
        }
        status |= ompx_fence();
    }
    check(status, "put by teams");
}

void bandwidth(char *target, char *source) {
    for (std::size_t nbytes = std::size_t{64} << 10; nbytes <= max_bytes; nbytes *= 4) {
        if (g_me == 0) {
            int const many = nbytes >= (std::size_t{16} << 20) ? 10 : 40;
            double const one = median_us([&] { put_by_teams(target, source, nbytes, 1); });
            double const all = median_us([&] { put_by_teams(target, source, nbytes, many + 1); });
            double const inside = (all - one) / many;
            double const driver = median_us([&] {
                check(omp_target_memcpy(target, source, nbytes, 0, 0, g_device, g_device),
                      "copy by the driver");
            });
            print_figure("region-with-team-put", nbytes, one, "us");
            print_figure("team-put", nbytes, inside, "us");
            print_figure("team-put-rate", nbytes, static_cast<double>(nbytes) / inside / 1e3,
                         "GB/s");
            print_figure("driver-copy", nbytes, driver, "us");
            print_figure("team-put-share", nbytes, driver / inside, "of-driver-copy");
        }
        meet();
    }
}

/// All threads add to cells of the next rank: to one, or each to its own.
void additions(std::uint64_t *cells, bool apart) {
    constexpr int teams = 132;
    constexpr int each = 200;
    int const other = g_next;
    std::uint64_t done = 0;
    double const took = median_us([&] {
        int status = 0;
        std::uint64_t num_threads = 0;
#pragma omp target teams num_teams(teams) thread_limit(threads) is_device_ptr(cells)               \
    map(tofrom : status, num_threads) reduction(| : status) reduction(+ : num_threads)
#pragma omp parallel num_threads(threads) reduction(| : status) reduction(+ : num_threads)
        {
            int const thread = omp_get_team_num() * threads + omp_get_thread_num();
            std::uint64_t *const cell = cells + (apart ? thread : 0);
            std::uint64_t const one = 1;
            for (int i = 0; i < each; ++i) {
                status |= ompx_atomic_add(other, cell, &one, OMPX_UINT64);
            }
            num_threads += 1;
        }
        check(status, "additions");
        done = num_threads * each;
    });
    if (g_me == 0) {
        print_figure(apart ? "atomic-add-apart" : "atomic-add-one-cell", 8,
                     static_cast<double>(done) / took, "M/s");
    }
    meet();
}

/// One thread: puts of 8 bytes, and fences.
void single_thread(char *target, const char *source) {
    constexpr int times = 20000;
    int const other = g_next;
    for (bool const with_fence : {false, true}) {
        double const took = median_us([&] {
            int status = 0;
#pragma omp target is_device_ptr(target, source) map(tofrom : status)
            for (int i = 0; i < times; ++i) {
                status |= ompx_put(other, target, source, 8);
                status |= with_fence ? ompx_fence() : 0;
            }
            check(status, "puts of one thread");
        });
        if (g_me == 0) {
            print_figure(with_fence ? "put-fence" : "put", 8, took / times, "us");
        }
        meet();
    }
}

/// Barriers of all ranks' regions.
void barriers() {
    constexpr int times = 2000;
    double const took = median_us([&] {
        int status = 0;
#pragma omp target map(tofrom : status)
        for (int i = 0; i < times; ++i) {
            status |= ompx_barrier();
        }
        check(status, "barriers");
    });
    if (g_me == 0) {
        print_figure("barrier", 0, took / times, "us");
    }
    meet();
}

} // namespace

int main(int argc, char **argv) {
    bool const together = argc > 1 && std::strcmp(argv[1], "--together") == 0;
    g_me = ompx_rank_num();
    g_next = (g_me + 1) % ompx_num_ranks();
    g_device = omp_get_default_device();
    auto *const target = allocate<char>(max_bytes);
    auto *const source = allocate<char>(max_bytes);
    auto *const signals = allocate<std::uint64_t>(64);
    auto *const cells = allocate<std::uint64_t>(std::size_t{132} * threads);
    int on_host = 1;
#pragma omp target map(from : on_host)
    on_host = omp_is_initial_device();
    if (on_host != 0) {
        fail("target regions run on the host");
    }
    meet();
    if (together && ompx_num_ranks() == 2) {
        between_ranks(signals, target, source);
        barriers();
    }
    between_teams(signals, target, source);
    single_thread(target, source);
    additions(cells, false);
    additions(cells, true);
    bandwidth(target, source);
    return 0;
}
