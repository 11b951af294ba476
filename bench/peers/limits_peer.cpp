// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The limits of the machine, without a library: ranks are forked processes that share one memfd
// mapping, put is memcpy, and the barrier is an atomic counter with a short spin and then
// sched_yield.
#include "bench/memory_use.h"
#include "bench/suite.h"

#include <atomic>
#include <csignal>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

namespace diomp::bench {
namespace {

constexpr int max_ranks = 64;

struct shared_state {
    alignas(64) std::atomic<std::uint32_t> arrived;
    alignas(64) std::atomic<std::uint32_t> round;
    alignas(64) std::atomic<double> slots[max_ranks];
};

class plain_memory {
public:
    /// `arenas` is one mapping: a page of state, then `arena_bytes` per rank.
    plain_memory(int rank, int size, char *mapping, std::size_t arena_bytes)
        : rank_(rank), size_(size), state_(reinterpret_cast<shared_state *>(mapping)),
          arenas_(mapping + state_bytes), arena_bytes_(arena_bytes) {
        std::memset(arena(rank), 0,
                    arena_bytes); // the owner touches its arena first, as in a segment
    }
    static constexpr std::size_t state_bytes = (sizeof(shared_state) / 4096 + 1) * 4096;

    static const char *name() { return "limits"; }
    static const char *conduit() { return "memfd"; }
    [[nodiscard]] int rank() const { return rank_; }
    [[nodiscard]] int size() const { return size_; }
    void barrier() {
        const std::uint32_t round = state_->round.load(std::memory_order_acquire);
        if (state_->arrived.fetch_add(1, std::memory_order_acq_rel) + 1 ==
            static_cast<std::uint32_t>(size_)) {
            state_->arrived.store(0, std::memory_order_relaxed);
            state_->round.store(round + 1, std::memory_order_release);
            return;
        }
        for (int spins = 0; state_->round.load(std::memory_order_acquire) == round; ++spins) {
            if (spins > 50) {
                sched_yield();
            }
        }
    }
    double max_over_ranks(double mine) {
        state_->slots[rank_].store(mine);
        barrier();
        double result = 0;
        for (int rank = 0; rank < size_; ++rank) {
            result = std::max(result, state_->slots[rank].load());
        }
        barrier();
        return result;
    }
    [[noreturn]] void fail(const std::string &message) const {
        std::fprintf(stderr, "limits: rank %d: %s\n", rank_, message.c_str());
        std::exit(1);
    }
    char *symmetric(std::size_t nbytes) {
        char *const result = arena(rank_) + used_;
        used_ += (nbytes + 4095) / 4096 * 4096;
        return result;
    }
    [[nodiscard]] static bool allows_threads(int /*threads*/) { return true; }
    [[nodiscard]] char *remote_ptr(const void *mine, int rank) const {
        return arena(rank) + (static_cast<const char *>(mine) - arena(rank_));
    }
    void put(int rank, void *dst, const void *src, std::size_t nbytes) {
        plain_copy(remote_ptr(dst, rank), src, nbytes);
    }
    void fence(int /*rank*/) { std::atomic_thread_fence(std::memory_order_release); }
    void get(void *dst, int rank, const void *src, std::size_t nbytes) {
        plain_copy(dst, remote_ptr(src, rank), nbytes);
    }
    static std::vector<std::string> buffer_kinds() { return {"private"}; }
    static buffer make_buffer(const std::string & /*kind*/, std::size_t nbytes) {
        return private_buffer(nbytes);
    }

private:
    [[nodiscard]] char *arena(int rank) const {
        return arenas_ + static_cast<std::size_t>(rank) * arena_bytes_;
    }

    int rank_;
    int size_;
    shared_state *state_;
    char *arenas_;
    std::size_t arena_bytes_;
    std::size_t used_ = 0;
};

char *make_mapping(std::size_t nbytes) {
    const int fd = memfd_create("limits", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, static_cast<off_t>(nbytes)) != 0) {
        std::perror("limits: memfd");
        std::exit(1);
    }
    void *const mapping = mmap(nullptr, nbytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapping == MAP_FAILED) {
        std::perror("limits: mmap");
        std::exit(1);
    }
    close(fd);
    return static_cast<char *>(mapping);
}

/// Rank 0 is the caller; the others are its children, which die with it.
int fork_ranks(int size, std::vector<pid_t> &children) {
    const pid_t parent = getpid();
    for (int rank = 1; rank < size; ++rank) {
        const pid_t child = fork();
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() != parent) {
                std::exit(1);
            }
            children.clear();
            return rank;
        }
        children.push_back(child);
    }
    return 0;
}

} // namespace
} // namespace diomp::bench

int main(int argc, char **argv) {
    using namespace diomp::bench;
    int size = 2;
    options const wanted = parse_benchmarks(
        "Limits of the machine: memcpy, streaming stores and a bare barrier over a memfd", argc,
        argv,
        {.subcommands = {{"memcpy", "memcpy and streaming stores, both ways, by size"}},
         .numbers = {{"--ranks", "processes", &size, 1, max_ranks}}});
    const std::size_t arena_bytes = 2 * symmetric_bytes(wanted) + mib;
    char *const mapping =
        make_mapping(plain_memory::state_bytes + static_cast<std::size_t>(size) * arena_bytes);
    std::vector<pid_t> children;
    const int rank = fork_ranks(size, children);
    if (size <= sysconf(_SC_NPROCESSORS_ONLN)) {
        detail::bind_thread(rank);
    }
    plain_memory library(rank, size, mapping, arena_bytes);
    library.barrier();
    bool ok = run_and_report(library, wanted);
    for (const pid_t child : children) {
        int status = 0;
        ok = waitpid(child, &status, 0) == child && status == 0 && ok;
    }
    return ok ? 0 : 1;
}
