// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Puts between remote devices of two ranks, started by the host and inside a target region, beside
// the same puts between the ranks; allreduces of the host on memory of the devices, beside those of
// the ranks, and of the ranks on what they have copied from their devices. Two ranks, each with one
// device: with the hosts and the services on two machines, both kinds take the same link.
//
//   diomp-run -n 2 --remote-devices HOST,HOST bench_device_to_device [ROUNDS]
#include "diomp.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr std::size_t large_bytes = std::size_t{1} << 20;

double median(std::vector<double> of) {
    std::nth_element(of.begin(), of.begin() + static_cast<std::ptrdiff_t>(of.size() / 2), of.end());
    return of[of.size() / 2];
}

/// The median of `rounds` means of `calls` calls, in microseconds.
template <typename Call>
double measure(int rounds, int calls, Call call) {
    std::vector<double> means;
    for (int round = 0; round < rounds; ++round) {
        call();
        double const begin = omp_get_wtime();
        for (int i = 0; i < calls; ++i) {
            call();
        }
        means.push_back((omp_get_wtime() - begin) / calls * 1e6);
    }
    return median(means);
}

void check(bool is_good, const char *what) {
    if (!is_good) {
        std::fprintf(stderr, "%s failed: %s\n", what, ompx_last_error());
        ompx_abort(1);
    }
}

/// Microseconds for one way of a put with signal, there and back in two regions.
double ping_pong(int me, int peer, char *data, std::uint64_t *signal, std::size_t nbytes,
                 int calls) {
    double seconds = 0;
    int failures = 0;
    std::uint64_t first = 0;
#pragma omp target is_device_ptr(signal) map(from : first)
    first = *signal;
    ompx_barrier();
#pragma omp target is_device_ptr(data, signal) map(tofrom : seconds, failures)
    {
        double const begin = omp_get_wtime();
        for (int i = 1; i <= calls; ++i) {
            std::uint64_t const step = first + static_cast<std::uint64_t>(i);
            if (me == 1) {
                failures += ompx_signal_wait(signal, OMPX_CMP_GE, step) != 0 ? 1 : 0;
            }
            failures +=
                ompx_put_signal(peer, data, data, nbytes, signal, step, OMPX_SIGNAL_SET) != 0 ? 1
                                                                                              : 0;
            if (me == 0) {
                failures += ompx_signal_wait(signal, OMPX_CMP_GE, step) != 0 ? 1 : 0;
            }
        }
        seconds = omp_get_wtime() - begin;
    }
    check(failures == 0, "ompx_put_signal in a region");
    return seconds / calls / 2 * 1e6;
}

double host_ping_pong(int me, int peer, char *data, std::uint64_t *signal, std::size_t nbytes,
                      int calls) {
    std::uint64_t const first = *signal;
    ompx_barrier();
    double const begin = omp_get_wtime();
    for (int i = 1; i <= calls; ++i) {
        std::uint64_t const step = first + static_cast<std::uint64_t>(i);
        if (me == 1) {
            check(ompx_signal_wait(signal, OMPX_CMP_GE, step) == 0, "ompx_signal_wait");
        }
        check(ompx_put_signal(peer, data, data, nbytes, signal, step, OMPX_SIGNAL_SET) == 0,
              "ompx_put_signal");
        if (me == 0) {
            check(ompx_signal_wait(signal, OMPX_CMP_GE, step) == 0, "ompx_signal_wait");
        }
    }
    return (omp_get_wtime() - begin) / calls / 2 * 1e6;
}

/// Prints the times of allreduces in place.
void compare_allreduces(int me, double *host, double *device, std::size_t nbytes, int rounds,
                        int calls) {
    std::size_t const count = nbytes / sizeof(double);
    int const here = omp_get_initial_device();
    auto const by_ranks = [&] {
        check(ompx_allreduce(host, host, count, OMPX_DOUBLE, OMPX_MAX, nullptr) == 0,
              "ompx_allreduce");
    };
    auto const by_devices = [&] {
        check(ompx_target_allreduce(device, device, 0, count, OMPX_DOUBLE, OMPX_MAX, nullptr) == 0,
              "ompx_target_allreduce");
    };
    auto const by_copies = [&] {
        check(ompx_target_get(host, here, me, device, 0, nbytes) == 0, "ompx_target_get");
        by_ranks();
        check(ompx_target_put(me, device, 0, host, here, nbytes) == 0, "ompx_target_put");
    };
    double const ranks = measure(rounds, calls, by_ranks);
    double const devices = measure(rounds, calls, by_devices);
    double const copies = measure(rounds, calls, by_copies);
    if (me == 0) {
        std::printf("%8zu bytes  allreduce of the ranks %9.2f us, ompx_target_allreduce %9.2f us, "
                    "ratio %.2f; of the ranks with copies %9.2f us\n",
                    nbytes, ranks, devices, devices / ranks, copies);
    }
}

} // namespace

int main(int argc, char **argv) {
    int const rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 9;
    int const me = ompx_rank_num(), peer = 1 - me;
    check(ompx_num_ranks() == 2 && omp_get_num_devices() >= 1, "two ranks with a device each");
    auto *const host = static_cast<char *>(ompx_alloc(large_bytes, 0, OMPX_MEM_SYMMETRIC));
    auto *const host_signal =
        static_cast<std::uint64_t *>(omp_calloc(1, 8, ompx_symmetric_mem_alloc));
    auto *const device =
        static_cast<char *>(ompx_target_alloc(large_bytes, 0, ompx_symmetric_mem_alloc));
    auto *const signal =
        static_cast<std::uint64_t *>(ompx_target_alloc(8, 0, ompx_symmetric_mem_alloc));
    check(host != nullptr && host_signal != nullptr && device != nullptr && signal != nullptr,
          "allocation");
#pragma omp target is_device_ptr(signal)
    *signal = 0;
    for (std::size_t const nbytes : {std::size_t{8}, large_bytes}) {
        int const calls = nbytes == 8 ? 300 : 30;
        ompx_barrier();
        if (me == 0) {
            double const by_ranks = measure(rounds, calls, [&] {
                check(ompx_put(peer, host, host, nbytes) == 0 && ompx_fence() == 0, "ompx_put");
            });
            double const by_devices = measure(rounds, calls, [&] {
                check(ompx_target_put(peer, device, 0, device, 0, nbytes) == 0, "ompx_target_put");
            });
            std::printf("%8zu bytes  put and fence between ranks %9.2f us, ompx_target_put between "
                        "devices %9.2f us, ratio %.2f\n",
                        nbytes, by_ranks, by_devices, by_devices / by_ranks);
            constexpr int window = 64;
            double const windows = measure(rounds, calls / 10, [&] {
                for (int i = 0; i < window; ++i) {
                    check(ompx_put_nb(peer, host, host, nbytes, nullptr) == 0, "ompx_put_nb");
                }
                check(ompx_fence() == 0, "ompx_fence");
            });
            double const of_devices = measure(rounds, calls / 10, [&] {
                for (int i = 0; i < window; ++i) {
                    check(ompx_target_put_nb(peer, device, 0, device, 0, nbytes, nullptr) == 0,
                          "ompx_target_put_nb");
                }
                check(ompx_fence() == 0, "ompx_fence");
            });
            std::printf(
                "%8zu bytes  each of %d ompx_put_nb before a fence, between ranks %9.2f us, "
                "ompx_target_put_nb between devices %9.2f us, ratio %.2f\n",
                nbytes, window, windows / window, of_devices / window, of_devices / windows);
        }
        ompx_barrier();
        std::vector<double> in_region;
        std::vector<double> on_host;
        for (int round = 0; round < rounds; ++round) {
            on_host.push_back(host_ping_pong(me, peer, host, host_signal, nbytes, calls));
            ompx_barrier();
            in_region.push_back(ping_pong(me, peer, device, signal, nbytes, calls));
            ompx_barrier();
        }
        if (me == 0) {
            std::printf("%8zu bytes  put with signal, one way, between ranks %9.2f us, in regions "
                        "%9.2f us, ratio %.2f\n",
                        nbytes, median(on_host), median(in_region),
                        median(in_region) / median(on_host));
        }
        ompx_barrier();
        compare_allreduces(me, reinterpret_cast<double *>(host), reinterpret_cast<double *>(device),
                           nbytes, rounds, calls);
    }
}
