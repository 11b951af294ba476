// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Collectives: all ranks call one back to back and time their loop; the slowest rank counts. So a
// broadcast's root may run ahead of the others as far as the library permits, in every library.
// Data is doubles, the operator is the sum; the root is rank 0.
#pragma once

#include "session.h"

namespace diomp::bench {

/// A collective; sizes are in blocks of the size passed to the call.
struct collective {
    const char *name;
    bool src_per_rank;   ///< src has a block for every rank
    bool dst_per_rank;   ///< dst has one
    bool root_only;      ///< the result exists at the root only
    bool in_place;       ///< one buffer
    bool src_follows_me; ///< the result comes from block `me` of src, else from block 0
    bool sums;           ///< the result is the sum over ranks
};

inline const std::vector<collective> &collectives() {
    static const std::vector<collective> table{
        {"bcast", false, false, false, true, false, false},
        {"reduce", false, false, true, false, false, true},
        {"allreduce", false, false, false, false, false, true},
        {"gather", false, true, true, false, false, false},
        {"scatter", true, false, false, false, true, false},
        {"allgather", false, true, false, false, false, false},
        {"reduce_scatter", true, false, false, false, true, true},
        {"alltoall", true, true, false, false, true, false}};
    return table;
}

/// Returns element i of block `block` of rank `rank`'s source: small integers, so that sums are
/// exact.
inline double element(int rank, int block, std::size_t i) {
    return rank * 1000003.0 + block * 1009.0 + static_cast<double>(i % 997);
}

/// Returns element i of block `block` of the result on rank `me`.
inline double expected(const collective &what, int me, int ranks, int block, std::size_t i) {
    const int from_block = what.src_follows_me ? me : 0;
    if (!what.sums) {
        return element(what.dst_per_rank ? block : 0, from_block, i);
    }
    double sum = 0;
    for (int rank = 0; rank < ranks; ++rank) {
        sum += element(rank, from_block, i);
    }
    return sum;
}

/// Returns "", or a description of the first wrong element.
inline std::string result_error(const collective &what, const double *result, int me, int ranks,
                                std::size_t count) {
    for (int block = 0; block < (what.dst_per_rank ? ranks : 1); ++block) {
        for (std::size_t i = 0; i < count; ++i) {
            const double found = result[static_cast<std::size_t>(block) * count + i];
            const double wanted = expected(what, me, ranks, block, i);
            if (found != wanted) {
                return "rank " + std::to_string(me) + ", block " + std::to_string(block) +
                       ", element " + std::to_string(i) + " is " + number(found) + ", expected " +
                       number(wanted);
            }
        }
    }
    return {};
}

/// Returns the call as a body; empty if the library does not have it.
template <typename Library>
body collective_body(Library &library, const std::string &name, double *dst, double *src,
                     std::size_t nbytes) {
    const std::size_t count = nbytes / sizeof(double);
#define DIOMP_BENCH_COLLECTIVE(call, ...)                                                          \
    if constexpr (requires { library.call(__VA_ARGS__); }) {                                       \
        if (name == #call) {                                                                       \
            return all_ranks_body(library, [=, &library] { library.call(__VA_ARGS__); });          \
        }                                                                                          \
    }
    DIOMP_BENCH_COLLECTIVE(bcast, dst, nbytes)
    DIOMP_BENCH_COLLECTIVE(reduce, dst, src, count)
    DIOMP_BENCH_COLLECTIVE(allreduce, dst, src, count)
    DIOMP_BENCH_COLLECTIVE(gather, dst, src, nbytes)
    DIOMP_BENCH_COLLECTIVE(scatter, dst, src, nbytes)
    DIOMP_BENCH_COLLECTIVE(allgather, dst, src, nbytes)
    DIOMP_BENCH_COLLECTIVE(reduce_scatter, dst, src, count)
    DIOMP_BENCH_COLLECTIVE(alltoall, dst, src, nbytes)
#undef DIOMP_BENCH_COLLECTIVE
    return {};
}

template <typename Library>
void bench_collective_size(session<Library> &with, const collective &what, const std::string &kind,
                           std::size_t size) {
    Library &library = with.library;
    const int me = library.rank();
    const int ranks = library.size();
    const auto blocks = [ranks](bool per_rank) {
        return static_cast<std::size_t>(per_rank ? ranks : 1);
    };
    const std::size_t count = size / sizeof(double);
    const std::size_t dst_bytes = size * blocks(what.dst_per_rank);
    const buffer dst = library.make_buffer(kind, dst_bytes);
    const buffer src = library.make_buffer(kind, size * blocks(what.src_per_rank));
    auto *const result = reinterpret_cast<double *>(dst.get());
    auto *const source = reinterpret_cast<double *>(src.get());
    double *const filled = what.in_place ? result : source;
    std::memset(dst.get(), 0xff, dst_bytes); // not a number: equal to nothing
    for (std::size_t i = 0; i < count * blocks(what.src_per_rank); ++i) {
        if (!what.in_place || me == 0) {
            filled[i] = element(me, static_cast<int>(i / count), i % count);
        }
    }
    const body run = collective_body(library, what.name, result, source, size);
    if (!run) {
        return;
    }
    const timing time = with.measure_on_all(run);
    library.barrier();
    if (!what.root_only || me == 0) {
        with.require(what.name, result_error(what, result, me, ranks, count));
    }
    with.results.add({what.name, what.name, kind, 1, size, time});
    library.barrier();
}

template <typename Library>
void bench_collective(session<Library> &with, const collective &what) {
    constexpr std::size_t max_bytes = 64 * mib; // per buffer
    const auto ranks = static_cast<std::size_t>(with.library.size());
    for (const std::string &kind : with.library.buffer_kinds()) {
        for (const std::size_t size : collective_sizes(with.wanted)) {
            const bool per_rank = what.src_per_rank || what.dst_per_rank;
            const bool fits = size * (per_rank ? ranks : 1) <= max_bytes;
            if (size % sizeof(double) == 0 && size > 0 && fits) {
                bench_collective_size(with, what, kind, size);
            } else if (with.is_origin()) {
                std::fprintf(stderr,
                             "benchmark: %s of %zu bytes left out (sizes are multiples of 8 and a "
                             "buffer at most 64 MiB)\n",
                             what.name, size);
            }
        }
    }
}

} // namespace diomp::bench
