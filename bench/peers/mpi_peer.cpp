// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The benchmarks over MPI, for any MPI library. One-sided: one window from MPI_Win_allocate, locked
// by lock_all for the whole run; put is MPI_Put, fence is MPI_Win_flush of the target, get is
// MPI_Get and flush. Locks are MPI_Win_lock(EXCLUSIVE) of a second window.
#include "bench/memory_use.h"
#include "bench/suite.h"

// Disables the deprecated C++ bindings, which cause warnings.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

namespace diomp::bench {
namespace {

class mpi_library {
    static constexpr std::size_t page_bytes = 4096;

public:
    mpi_library(std::size_t arena_bytes, bool several_threads) {
        // MPI_THREAD_MULTIPLE slows every call down; only `rate` with several threads needs it.
        int provided = 0;
        MPI_Init_thread(nullptr, nullptr, several_threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE,
                        &provided);
        multiple_ = provided == MPI_THREAD_MULTIPLE;
        MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
        MPI_Comm_size(MPI_COMM_WORLD, &size_);
        MPI_Win_allocate(static_cast<MPI_Aint>(arena_bytes), 1, MPI_INFO_NULL, MPI_COMM_WORLD,
                         &arena_, &window_);
        std::memset(arena_, 0, arena_bytes);
        // The window begins some bytes after the start of a page, where the C library's memcpy from
        // a page-aligned source is slow on some processors (glibc's bug 30994). For a fair
        // comparison all buffers are page-aligned.
        const auto past_page = reinterpret_cast<std::uintptr_t>(arena_) % page_bytes;
        const unsigned long own_shift = (page_bytes - past_page) % page_bytes;
        unsigned long shift = 0;
        MPI_Allreduce(&own_shift, &shift, 1, MPI_UNSIGNED_LONG, MPI_MAX, MPI_COMM_WORLD);
        used_ = shift;
        MPI_Win_lock_all(MPI_MODE_NOCHECK, window_);
        MPI_Win_allocate(sizeof(double), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &lock_word_,
                         &lock_window_);
    }
    mpi_library(const mpi_library &) = delete;
    mpi_library &operator=(const mpi_library &) = delete;
    ~mpi_library() {
        MPI_Win_unlock_all(window_);
        MPI_Win_free(&window_);
        MPI_Win_free(&lock_window_);
        MPI_Finalize();
    }

    static const char *name() {
#if defined(OPEN_MPI)
        return "openmpi";
#elif defined(MPICH_VERSION)
        return "mpich";
#else
        return "mpi";
#endif
    }
    static const char *conduit() { return "default"; }
    [[nodiscard]] int rank() const { return rank_; }
    [[nodiscard]] int size() const { return size_; }
    void barrier() { MPI_Barrier(MPI_COMM_WORLD); }
    double max_over_ranks(double mine) {
        double result = 0;
        MPI_Allreduce(&mine, &result, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        return result;
    }
    [[noreturn]] void fail(const std::string &message) {
        std::fprintf(stderr, "%s: rank %d: %s\n", name(), rank_, message.c_str());
        MPI_Abort(MPI_COMM_WORLD, 1);
        std::abort();
    }

    char *symmetric(std::size_t nbytes) {
        char *const result = arena_ + used_;
        used_ += (nbytes + page_bytes - 1) / page_bytes * page_bytes;
        return result;
    }
    [[nodiscard]] bool allows_threads(int threads) const { return threads == 1 || multiple_; }

    void put(int rank, void *dst, const void *src, std::size_t nbytes) {
        const int count = static_cast<int>(nbytes);
        MPI_Put(src, count, MPI_BYTE, rank, displacement(dst), count, MPI_BYTE, window_);
    }
    void fence(int rank) { MPI_Win_flush(rank, window_); }
    void start_get(void *dst, int rank, const void *src, std::size_t nbytes) {
        const int count = static_cast<int>(nbytes);
        MPI_Get(dst, count, MPI_BYTE, rank, displacement(src), count, MPI_BYTE, window_);
    }
    void finish_gets(int rank) { MPI_Win_flush(rank, window_); }
    void get(void *dst, int rank, const void *src, std::size_t nbytes) {
        start_get(dst, rank, src, nbytes);
        finish_gets(rank);
    }
    std::int64_t fetch_add(int rank, std::int64_t *target, std::int64_t operand) {
        std::int64_t old = 0;
        MPI_Fetch_and_op(&operand, &old, MPI_INT64_T, rank, displacement(target), MPI_SUM, window_);
        MPI_Win_flush(rank, window_);
        return old;
    }
    void lock(int rank) { MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, lock_window_); }
    void unlock(int rank) { MPI_Win_unlock(rank, lock_window_); }

    static std::vector<std::string> buffer_kinds() { return {"private"}; }
    static buffer make_buffer(const std::string & /*kind*/, std::size_t nbytes) {
        return private_buffer(nbytes);
    }
    void bcast(double *data, std::size_t nbytes) {
        MPI_Bcast(data, static_cast<int>(nbytes), MPI_BYTE, 0, MPI_COMM_WORLD);
    }
    void reduce(double *dst, const double *src, std::size_t count) {
        MPI_Reduce(src, dst, static_cast<int>(count), MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    }
    void allreduce(double *dst, const double *src, std::size_t count) {
        MPI_Allreduce(src, dst, static_cast<int>(count), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    void gather(double *dst, const double *src, std::size_t nbytes) {
        const int count = static_cast<int>(nbytes);
        MPI_Gather(src, count, MPI_BYTE, dst, count, MPI_BYTE, 0, MPI_COMM_WORLD);
    }
    void scatter(double *dst, const double *src, std::size_t nbytes) {
        const int count = static_cast<int>(nbytes);
        MPI_Scatter(src, count, MPI_BYTE, dst, count, MPI_BYTE, 0, MPI_COMM_WORLD);
    }
    void allgather(double *dst, const double *src, std::size_t nbytes) {
        const int count = static_cast<int>(nbytes);
        MPI_Allgather(src, count, MPI_BYTE, dst, count, MPI_BYTE, MPI_COMM_WORLD);
    }
    void reduce_scatter(double *dst, const double *src, std::size_t count) {
        MPI_Reduce_scatter_block(src, dst, static_cast<int>(count), MPI_DOUBLE, MPI_SUM,
                                 MPI_COMM_WORLD);
    }
    void alltoall(double *dst, const double *src, std::size_t nbytes) {
        const int count = static_cast<int>(nbytes);
        MPI_Alltoall(src, count, MPI_BYTE, dst, count, MPI_BYTE, MPI_COMM_WORLD);
    }

private:
    [[nodiscard]] MPI_Aint displacement(const void *mine) const {
        return static_cast<const char *>(mine) - arena_;
    }

    int rank_ = 0;
    int size_ = 1;
    bool multiple_ = false;
    char *arena_ = nullptr;
    std::size_t used_ = 0;
    MPI_Win window_ = MPI_WIN_NULL;
    char *lock_word_ = nullptr;
    MPI_Win lock_window_ = MPI_WIN_NULL;
};

} // namespace
} // namespace diomp::bench

int main(int argc, char **argv) {
    using namespace diomp::bench;
    options const wanted = parse_benchmarks("The benchmarks of diomp-bench over MPI", argc, argv,
                                            {.subcommands = {hello}});
    if (wanted.wants("hello")) {
        MPI_Init(nullptr, nullptr);
        MPI_Barrier(MPI_COMM_WORLD);
        print_resident_memory();
        MPI_Finalize();
        return 0;
    }
    mpi_library library(2 * symmetric_bytes(wanted) + mib, wanted.several_threads());
    return run_and_report(library, wanted) ? 0 : 1;
}
