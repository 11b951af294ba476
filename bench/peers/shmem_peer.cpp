// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The benchmarks over OpenSHMEM 1.4: putmem + quiet, getmem, and those collectives that this
// version has in the form of the benchmarks. They need symmetric buffers, so their rows have
// "global".
#include "bench/memory_use.h"
#include "bench/suite.h"

#include <shmem.h>

namespace diomp::bench {
namespace {

class shmem_library {
public:
    explicit shmem_library(bool several_threads) {
        int provided = SHMEM_THREAD_SINGLE;
        shmem_init_thread(several_threads ? SHMEM_THREAD_MULTIPLE : SHMEM_THREAD_SINGLE, &provided);
        multiple_ = provided == SHMEM_THREAD_MULTIPLE;
        for (long &word : sync_) {
            word = SHMEM_SYNC_VALUE;
        }
        shmem_barrier_all();
    }

    static const char *name() { return "openshmem"; }
    static const char *conduit() { return "default"; }
    [[nodiscard]] int rank() const { return shmem_my_pe(); }
    [[nodiscard]] int size() const { return shmem_n_pes(); }
    void barrier() { shmem_barrier_all(); }
    double max_over_ranks(double mine) {
        slot_ = mine;
        shmem_barrier_all();
        double result = 0;
        for (int rank = 0; rank < size(); ++rank) {
            result = std::max(result, shmem_double_g(&slot_, rank));
        }
        shmem_barrier_all();
        return result;
    }
    [[noreturn]] void fail(const std::string &message) {
        std::fprintf(stderr, "%s: rank %d: %s\n", name(), rank(), message.c_str());
        shmem_global_exit(1);
        std::abort();
    }

    char *symmetric(std::size_t nbytes) {
        auto *const memory = static_cast<char *>(shmem_align(4096, nbytes));
        if (memory == nullptr) {
            fail("no symmetric memory: raise SHMEM_SYMMETRIC_HEAP_SIZE");
        }
        std::memset(memory, 0, nbytes);
        return memory;
    }
    [[nodiscard]] bool allows_threads(int threads) const { return threads == 1 || multiple_; }

    void put(int rank, void *dst, const void *src, std::size_t nbytes) {
        shmem_putmem(dst, src, nbytes, rank);
    }
    void fence(int /*rank*/) { shmem_quiet(); }
    void get(void *dst, int rank, const void *src, std::size_t nbytes) {
        shmem_getmem(dst, src, nbytes, rank);
    }
    void start_get(void *dst, int rank, const void *src, std::size_t nbytes) {
        shmem_getmem_nbi(dst, src, nbytes, rank);
    }
    void finish_gets(int /*rank*/) { shmem_quiet(); }
    std::int64_t fetch_add(int rank, std::int64_t *target, std::int64_t operand) {
        static_assert(sizeof(long) ==
                      sizeof(std::int64_t)); // the fixed-width form is missing in 4.1
        return shmem_long_atomic_fetch_add(reinterpret_cast<long *>(target), operand, rank);
    }

    static std::vector<std::string> buffer_kinds() { return {"global"}; }
    buffer make_buffer(const std::string & /*kind*/, std::size_t nbytes) {
        return {symmetric(nbytes), [](char *memory) { shmem_free(memory); }};
    }
    void bcast(double *data, std::size_t nbytes) {
        shmem_broadcast64(data, data, nbytes / sizeof(double), 0, 0, 0, size(), next_sync());
    }
    void allreduce(double *dst, double *src, std::size_t count) {
        // pWrk must have as many elements as the standard requires.
        const std::size_t needed =
            std::max<std::size_t>(count / 2 + 1, SHMEM_REDUCE_MIN_WRKDATA_SIZE);
        if (work_.size() < needed) {
            fail("allreduce without work space");
        }
        shmem_double_sum_to_all(dst, src, static_cast<int>(count), 0, 0, size(), work_.data(),
                                next_sync());
    }
    void allgather(double *dst, double *src, std::size_t nbytes) {
        shmem_fcollect64(dst, src, nbytes / sizeof(double), 0, 0, size(), next_sync());
    }
    void alltoall(double *dst, double *src, std::size_t nbytes) {
        shmem_alltoall64(dst, src, nbytes / sizeof(double), 0, 0, size(), next_sync());
    }

    /// Allocates the work array of reductions. Collective.
    void reserve_work(std::size_t count) {
        auto *const memory = reinterpret_cast<double *>(symmetric(count * sizeof(double)));
        work_ = {memory, count};
    }

    /// Ends the process without shmem_finalize(), which crashes in any program with Open MPI 4.1.4
    /// of Debian 12. The launcher may report an abnormal exit. Does not return.
    [[noreturn]] static void exit_without_finalize(int code) {
        std::fflush(nullptr);
        shmem_barrier_all();
        _exit(code);
    }

private:
    static constexpr std::size_t sync_words = 256; ///< more than any of the SHMEM_*_SYNC_SIZE
    static constexpr std::size_t sync_arrays = 32;

    /// Returns the next pSync array. An array must not be in use on any rank when it is reused, and
    /// a broadcast's root may be far ahead: so there are 32 arrays, and a barrier (counted, 1/32 of
    /// it per call) before they are reused.
    long *next_sync() {
        static_assert(sync_words >= SHMEM_REDUCE_SYNC_SIZE && sync_words >= SHMEM_BCAST_SYNC_SIZE &&
                      sync_words >= SHMEM_COLLECT_SYNC_SIZE &&
                      sync_words >= SHMEM_ALLTOALL_SYNC_SIZE);
        if (next_ == sync_arrays) {
            shmem_barrier_all();
            next_ = 0;
        }
        return &sync_[sync_words * next_++];
    }

    // Static, since OpenSHMEM makes such variables symmetric.
    static inline long sync_[sync_words * sync_arrays];
    static inline double slot_ = 0;
    std::span<double> work_;
    std::size_t next_ = 0;
    bool multiple_ = false;
};

} // namespace
} // namespace diomp::bench

int main(int argc, char **argv) {
    using namespace diomp::bench;
    options const wanted = parse_benchmarks("The benchmarks of diomp-bench over OpenSHMEM", argc,
                                            argv, {.subcommands = {hello}});
    shmem_library library(wanted.several_threads());
    if (wanted.wants("hello")) {
        print_resident_memory();
        shmem_library::exit_without_finalize(0);
    }
    if (wanted.wants("allreduce")) {
        const std::vector<std::size_t> sizes = collective_sizes(wanted);
        const std::size_t largest = *std::max_element(sizes.begin(), sizes.end());
        library.reserve_work(largest / sizeof(double) + SHMEM_REDUCE_MIN_WRKDATA_SIZE + 1);
    }
    shmem_library::exit_without_finalize(run_and_report(library, wanted) ? 0 : 1);
}
