// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The benchmarks' interface to DiOMP, through its public header like any program. put is ompx_put,
// fence is ompx_fence, get is ompx_get; windows of gets use ompx_get_nb.
#pragma once

#include "bench/suite.h"

#include <diomp.h>

namespace diomp::bench {

[[noreturn]] inline void fail(const std::string &message) {
    std::fprintf(stderr, "diomp-bench: rank %d: %s\n", ompx_rank_num(), message.c_str());
    ompx_abort(1);
}
/// A separate function, so that check() is inlined.
[[noreturn]] inline void fail_with(int status) {
    fail(std::string(ompx_status_string(status)) + ": " + ompx_last_error());
}
inline void check(int status) {
    if (status != OMPX_SUCCESS) [[unlikely]] {
        fail_with(status);
    }
}

/// Channels to and from another rank.
class channel_pair {
public:
    channel_pair(int other, std::size_t nbytes) {
        constexpr int depth = 2;
        check(ompx_channel_create(other, 0, OMPX_CHANNEL_SENDER, nbytes, depth, &to_));
        check(ompx_channel_create(other, 0, OMPX_CHANNEL_RECEIVER, nbytes, depth, &from_));
    }
    ~channel_pair() {
        ompx_channel_free(&to_);
        ompx_channel_free(&from_);
    }
    channel_pair(const channel_pair &) = delete;
    channel_pair &operator=(const channel_pair &) = delete;

    void send(const void *data) const { check(ompx_channel_send(to_, data)); }
    /// The next message, until release().
    [[nodiscard]] const void *receive() const {
        const void *const data = ompx_channel_receive(from_);
        if (data == nullptr) [[unlikely]] {
            fail_with(OMPX_ERR_STATE);
        }
        return data;
    }
    void release() const { check(ompx_channel_release(from_)); }

private:
    ompx_channel_t to_ = OMPX_CHANNEL_NONE;
    ompx_channel_t from_ = OMPX_CHANNEL_NONE;
};

/// Transfers between two ranks, signals, atomics, locks.
class diomp_transfers {
public:
    using channels = channel_pair;

    [[nodiscard]] static char *remote_ptr(const void *mine, int rank) {
        return static_cast<char *>(ompx_remote_ptr(mine, rank));
    }

    static void put(int rank, void *dst, const void *src, std::size_t nbytes) {
        check(ompx_put(rank, dst, src, nbytes));
    }
    static void fence(int /*rank*/) { check(ompx_fence()); }
    static void put_and_wait(int rank, void *dst, const void *src, std::size_t nbytes) {
        ompx_event_t event = nullptr;
        check(ompx_put_nb(rank, dst, src, nbytes, &event));
        check(ompx_event_wait(&event));
    }
    static void get(void *dst, int rank, const void *src, std::size_t nbytes) {
        check(ompx_get(dst, rank, src, nbytes));
    }
    static void put_signal(int rank, void *dst, const void *src, std::size_t nbytes,
                           std::uint64_t *signal, std::uint64_t value) {
        check(ompx_put_signal(rank, dst, src, nbytes, signal, value, OMPX_SIGNAL_SET));
    }
    static void wait_signal(const std::uint64_t *signal, std::uint64_t value) {
        check(ompx_signal_wait(signal, OMPX_CMP_EQ, value));
    }
    void start_get(void *dst, int rank, const void *src, std::size_t nbytes) {
        check(ompx_get_nb(dst, rank, src, nbytes, &events_.emplace_back()));
    }
    void finish_gets(int /*rank*/) {
        for (ompx_event_t &event : events_) {
            check(ompx_event_wait(&event));
        }
        events_.clear();
    }
    static std::int64_t fetch_add(int rank, std::int64_t *target, std::int64_t operand) {
        std::int64_t old = 0;
        check(ompx_atomic_fetch(rank, target, &operand, &old, OMPX_INT64, OMPX_SUM));
        return old;
    }
    static void lock(int rank) { check(ompx_lock(rank)); }
    static void unlock(int rank) { check(ompx_unlock(rank)); }

private:
    std::vector<ompx_event_t> events_;
};

/// Collectives of all ranks.
class diomp_collectives {
public:
    static void bcast(double *data, std::size_t nbytes) {
        check(ompx_bcast(data, nbytes, ompx_group_world));
    }
    static void reduce(double *dst, const double *src, std::size_t count) {
        check(ompx_reduce(dst, src, count, OMPX_DOUBLE, OMPX_SUM, 0, ompx_group_world));
    }
    static void allreduce(double *dst, const double *src, std::size_t count) {
        check(ompx_allreduce(dst, src, count, OMPX_DOUBLE, OMPX_SUM, ompx_group_world));
    }
    static void gather(double *dst, const double *src, std::size_t nbytes) {
        check(ompx_gather(dst, src, nbytes, 0, ompx_group_world));
    }
    static void scatter(double *dst, const double *src, std::size_t nbytes) {
        check(ompx_scatter(dst, src, nbytes, 0, ompx_group_world));
    }
    static void allgather(double *dst, const double *src, std::size_t nbytes) {
        check(ompx_allgather(dst, src, nbytes, ompx_group_world));
    }
    static void reduce_scatter(double *dst, const double *src, std::size_t count) {
        check(ompx_reduce_scatter(dst, src, count, OMPX_DOUBLE, OMPX_SUM, ompx_group_world));
    }
    static void alltoall(double *dst, const double *src, std::size_t nbytes) {
        check(ompx_alltoall(dst, src, nbytes, ompx_group_world));
    }
};

class diomp_library : public diomp_transfers, public diomp_collectives {
public:
    diomp_library()
        : rank_(ompx_rank_num()), size_(ompx_num_ranks()),
          slots_(reinterpret_cast<double *>(
              symmetric(sizeof(double) * static_cast<std::size_t>(size_)))) {}

    static const char *name() { return "diomp"; }
    /// The path from rank 0 to rank 1; other pairs are not measured point to point.
    [[nodiscard]] const char *conduit() const {
        if (size_ == 1) {
            return "self";
        }
        const bool loads = ompx_remote_ptr(slots_, rank_ == 0 ? 1 : 0) != nullptr;
        return loads ? "shm" : "network";
    }
    [[nodiscard]] int rank() const { return rank_; }
    [[nodiscard]] int size() const { return size_; }
    void barrier() const { check(ompx_barrier()); }
    /// Uses only puts and barriers, so that their benchmarks do not depend on collectives.
    double max_over_ranks(double mine) {
        for (int rank = 0; rank < size_; ++rank) {
            check(ompx_put(rank, &slots_[rank_], &mine, sizeof(mine)));
        }
        barrier();
        const double result = *std::max_element(slots_, slots_ + size_);
        barrier();
        return result;
    }
    [[noreturn]] static void fail(const std::string &message) { bench::fail(message); }
    /// Freed at the end of the process, with the segment.
    char *symmetric(std::size_t nbytes) const {
        auto *const memory = static_cast<char *>(allocate(nbytes, OMPX_MEM_SYMMETRIC));
        barrier();
        return memory;
    }
    static bool allows_threads(int /*threads*/) { return true; }
    static std::vector<std::string> buffer_kinds() { return {"private", "global"}; }
    buffer make_buffer(const std::string &kind, std::size_t nbytes) const {
        if (kind == "private") {
            return private_buffer(nbytes);
        }
        auto *const memory = static_cast<char *>(allocate(nbytes, OMPX_MEM_LOCAL));
        return {memory, [](char *p) { check(ompx_free(p)); }};
    }

private:
    /// Allocates page-aligned, zeroed and touched memory, like private buffers.
    [[nodiscard]] void *allocate(std::size_t nbytes, ompx_mem_kind_t kind) const {
        void *const memory = ompx_alloc(nbytes, 4096, kind);
        if (memory == nullptr) {
            fail(std::string("no memory: ") + ompx_last_error());
        }
        std::memset(memory, 0, nbytes);
        return memory;
    }

    int rank_;
    int size_;
    double *slots_;
};

} // namespace diomp::bench
