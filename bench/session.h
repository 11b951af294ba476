// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The interface between benchmarks and communication libraries.
//
// Library is a class that wraps one communication library; the benchmarks are templates over it, so
// every library runs the same loops. Required:
//     static const char *name();  const char *conduit();  int rank();  int size();
//     void barrier();                       all ranks; completes their transfers
//     double max_over_ranks(double);        collective, untimed
//     [[noreturn]] void fail(const std::string &);   prints and ends the whole job
//     char *symmetric(std::size_t nbytes);  collective; zeroed; the own address names the copy of
//                                           every rank; lives as long as the library
//     void put(int rank, void *dst, const void *src, std::size_t nbytes);  src reusable after fence
//     void get(void *dst, int rank, const void *src, std::size_t nbytes);  complete on return
//     void fence(int rank);                 completes this rank's puts at `rank`
//     std::vector<std::string> buffer_kinds();  memory that collectives take: "private", "global"
//     buffer make_buffer(const std::string &kind, std::size_t nbytes);     collective
// Optional; a benchmark that needs a missing one is skipped: put_and_wait, put_signal, wait_signal,
// start_get, finish_gets, lock, unlock, fetch_add, allow_threads, remote_ptr, the type channels and
// each collective.
#pragma once

#include "options.h"
#include "report.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace diomp::bench {

using buffer = std::unique_ptr<char, std::function<void(char *)>>;

/// Allocates page-aligned memory and touches it, so that no benchmark measures page faults.
inline buffer private_buffer(std::size_t nbytes) {
    constexpr std::size_t page_bytes = 4096;
    const std::size_t rounded = (nbytes / page_bytes + 1) * page_bytes;
    auto *memory = static_cast<char *>(std::aligned_alloc(page_bytes, rounded));
    if (memory == nullptr) {
        std::fprintf(stderr, "benchmark: no memory for a buffer of %zu bytes\n", nbytes);
        std::abort();
    }
    std::memset(memory, 0, rounded);
    return {memory, [](char *p) { std::free(p); }};
}

inline unsigned char pattern_byte(std::size_t i, std::size_t seed) {
    return static_cast<unsigned char>(i * 131 + (i >> 8) * 7 + seed * 29 + 1);
}

inline void fill_pattern(char *memory, std::size_t nbytes, std::size_t seed) {
    for (std::size_t i = 0; i < nbytes; ++i) {
        memory[i] = static_cast<char>(pattern_byte(i, seed));
    }
}

/// Returns "" if the memory has the pattern, else a description of the first difference.
inline std::string pattern_error(const char *memory, std::size_t nbytes, std::size_t seed) {
    for (std::size_t i = 0; i < nbytes; ++i) {
        const auto found = static_cast<unsigned char>(memory[i]);
        if (found != pattern_byte(i, seed)) {
            return "byte " + std::to_string(i) + " of " + std::to_string(nbytes) + " is " +
                   std::to_string(found) + ", expected " + std::to_string(pattern_byte(i, seed));
        }
    }
    return {};
}

template <typename Library>
struct session {
    Library &library;
    const options &wanted;
    report &results;
    char *put_target = nullptr; ///< symmetric, each of the largest size
    char *get_source = nullptr;
    std::size_t largest_bytes = 0;

    /// Returns the target of point-to-point benchmarks, whose origin is rank 0.
    [[nodiscard]] int target() const { return library.size() > 1 ? 1 : 0; }
    [[nodiscard]] bool is_origin() const { return library.rank() == 0; }
    [[nodiscard]] bool is_target() const { return library.rank() == target(); }

    void require(const std::string &benchmark, const std::string &error) const {
        if (!error.empty()) {
            library.fail(benchmark + " moved wrong data: " + error);
        }
    }

    /// Runs the bodies on rank 0 while the others wait in a barrier.
    [[nodiscard]] std::vector<timing> measure_on_root(const std::vector<body> &bodies) const {
        std::vector<timing> times(bodies.size());
        library.barrier();
        if (is_origin()) {
            times = measure(bodies, wanted.how);
        }
        library.barrier();
        return times;
    }

    [[nodiscard]] timing measure_on_all(const body &run) const {
        return measure(std::span(&run, 1), wanted.how).front();
    }
};

inline constexpr std::size_t kib = 1024;
inline constexpr std::size_t mib = 1024 * kib;

inline std::vector<std::size_t> transfer_sizes(const options &wanted) {
    if (!wanted.sizes.empty()) {
        return wanted.sizes;
    }
    return {8, 64, 512, 4 * kib, 64 * kib, mib, 16 * mib, 64 * mib};
}

inline std::vector<std::size_t> collective_sizes(const options &wanted) {
    if (!wanted.sizes.empty()) {
        return wanted.sizes;
    }
    return {8, 512, 4 * kib, 64 * kib, mib, 16 * mib};
}

} // namespace diomp::bench
