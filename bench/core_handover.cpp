// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Measures the transfer of a block from one core to another through memory that both map. The first
// core copies a private block into a stage buffer and sets a flag; the second copies it out; the
// first is at most one block ahead. Varies the block size, the size of the memory that the stage
// buffers cycle through, and whether they are written through the caches or past them. This is the
// lower limit of staged collectives, and the reason for the way in which they stage
// (docs/collectives.md).
//
// bench_core_handover [SIZE_BYTES ...]
#include "copy_limits.h"
#include "two_cores.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace diomp::bench {
namespace {

using clock_type = std::chrono::steady_clock;

double seconds_since(clock_type::time_point begin) {
    return std::chrono::duration<double>(clock_type::now() - begin).count();
}

/// Microseconds per block.
struct handover_time {
    double write = 0;
    double read = 0;
    double both = 0;
};

struct handover {
    std::size_t nbytes;
    std::size_t buffer_bytes;
    bool past_caches;

    /// Distance between stage buffers: whole cache lines.
    [[nodiscard]] std::size_t stride() const { return (nbytes + 63) / 64 * 64; }
    [[nodiscard]] std::size_t offset_of(long block) const {
        return static_cast<std::size_t>(block) % std::max<std::size_t>(2, buffer_bytes / stride()) *
               stride();
    }
    [[nodiscard]] handover_time run(int one, int other) const;
};

struct free_deleter {
    void operator()(char *memory) const { std::free(memory); }
};
using block_memory = std::unique_ptr<char, free_deleter>;

/// Allocates page-aligned memory and fills it.
block_memory make_filled(std::size_t nbytes) {
    constexpr std::size_t page_bytes = 4096;
    block_memory made(static_cast<char *>(
        std::aligned_alloc(page_bytes, (nbytes / page_bytes + 1) * page_bytes)));
    std::memset(made.get(), 1, nbytes);
    return made;
}

handover_time handover::run(int one, int other) const {
    const long num_blocks = std::max<long>(64, (long{200} << 20) / static_cast<long>(nbytes));
    auto const stage_buffers = make_filled(std::max(buffer_bytes, 2 * stride()));
    char *const first = stage_buffers.get();
    auto const source = make_filled(nbytes);
    shared_word written;
    shared_word read;
    handover_time time;
    std::thread reader([&] {
        bind_to_core(other);
        auto const target = make_filled(nbytes);
        for (long block = 0; block < num_blocks; ++block) {
            while (written.value.load(std::memory_order_acquire) <= block) {
            }
            auto const begin = clock_type::now();
            plain_copy(target.get(), first + offset_of(block), nbytes);
            time.read += seconds_since(begin);
            read.value.store(block + 1, std::memory_order_release);
        }
    });
    bind_to_core(one);
    auto const start = clock_type::now();
    for (long block = 0; block < num_blocks; ++block) {
        while (read.value.load(std::memory_order_acquire) < block - 1) {
        }
        auto const begin = clock_type::now();
        if (past_caches) {
            stream_copy(first + offset_of(block), source.get(), nbytes);
        } else {
            plain_copy(first + offset_of(block), source.get(), nbytes);
        }
        time.write += seconds_since(begin);
        written.value.store(block + 1, std::memory_order_release);
    }
    reader.join();
    time.both = seconds_since(start);
    for (double *const each : {&time.write, &time.read, &time.both}) {
        *each *= 1e6 / static_cast<double>(num_blocks);
    }
    return time;
}

void measure(std::size_t nbytes, int one, int other) {
    for (const std::size_t buffer_bytes : {2 * nbytes, std::size_t{2} << 20}) {
        for (const bool past_caches : {false, true}) {
            const double before = core_distance(one, other);
            const handover_time time = handover{nbytes, buffer_bytes, past_caches}.run(one, other);
            const double after = core_distance(one, other);
            std::printf("%10zu %10zu %-8s %10.2f %10.2f %10.2f %9.1f %7.0f %7.0f\n", nbytes,
                        buffer_bytes, past_caches ? "past" : "through", time.write, time.read,
                        time.both, static_cast<double>(nbytes) / time.both / 1e3, before, after);
        }
    }
}

int run(const std::vector<std::size_t> &sizes) {
    const std::vector<int> cores = allowed_cores();
    if (cores.size() < 2) {
        std::puts("bench_core_handover needs two cores");
        return 1;
    }
    std::puts("     bytes     buffer caches     write us    read us    both us      GB/s  trip ns "
              "before, after");
    for (const std::size_t nbytes : sizes) {
        measure(nbytes, cores[0], cores[1]);
    }
    return 0;
}

} // namespace
} // namespace diomp::bench

int main(int argc, char **argv) {
    std::vector<std::size_t> sizes;
    for (int i = 1; i < argc; ++i) {
        sizes.push_back(std::strtoull(argv[i], nullptr, 10));
        if (sizes.back() == 0) {
            std::fprintf(stderr, "usage: bench_core_handover [SIZE_BYTES ...]\n");
            return 2;
        }
    }
    return diomp::bench::run(sizes.empty() ? std::vector<std::size_t>{4096, 16384, 65536, 262144}
                                           : sizes);
}
