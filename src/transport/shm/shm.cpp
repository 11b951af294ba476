// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/shm/shm.h"

#include "base/cpu.h"
#include "base/lazy_array.h"
#include "transport/shm/futex.h"
#include "transport/shm/ring.h"

#include <fmt/core.h>

#include <cerrno>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

namespace diomp::transport::shm {
namespace {

/// Control area of a rank, shared with the other ranks of its node, in zeroed shared memory.
struct control {
    /// Waking. A sender that finds sleepers and no pollers rings the doorbell; it reads both
    /// counters after a full fence that follows its push, and the receiver writes them before a
    /// full fence that precedes its check of the ring: at least one side sees the other.
    alignas(cache_line_bytes) std::atomic<std::uint32_t> doorbell;
    std::atomic<std::uint32_t> sleepers;
    std::atomic<std::uint32_t> pollers;
    std::atomic<std::int32_t> pid;
    std::atomic<std::uint64_t> pid_namespace;
    /// Threads in idle_wait(), and whether one has started since they were last woken.
    std::atomic<std::uint32_t> idle_waiters;
    std::atomic<bool> has_unwoken_waiter;
    /// In the control area of the node's first rank: threads of the node in idle_wait() that wait
    /// for a store. On its own cache line, which all ranks keep in their caches while no thread
    /// sleeps.
    alignas(cache_line_bytes) std::atomic<std::uint32_t> store_sleepers;
    ring receive_ring;
};

/// Reasons to wake a thread that sleeps on its rank's doorbell.
constexpr std::uint32_t wake_progress = 1;
constexpr std::uint32_t wake_idle = 2;

constexpr std::size_t page_bytes = 4096;
/// Messages served per call: a flood must not occupy one thread for ever.
constexpr int max_batch = 64;

/// Identifies the PID namespace of this process; 0: unknown.
std::uint64_t pid_namespace() {
    struct stat about{};
    return ::stat("/proc/self/ns/pid", &about) == 0 ? about.st_ino : 0;
}

class shm_transport final : public node_transport {
public:
    shm_transport(const launch::job_info &job, const arena &arena, bool cross_memory_attach)
        : arena_(arena), self_(job.rank), cross_memory_attach_(cross_memory_attach),
          own_(control_of(job.local)), store_sleepers_(control_of(local_rank{0}).store_sleepers),
          peers_(static_cast<std::size_t>(job.size)) {
        caps_ = {"shm", ring::payload_bytes, &store_sleepers_};
        for (std::size_t local = 0; local < job.local_ranks.size(); ++local) {
            peers_[job.local_ranks[local].index()] = static_cast<std::int32_t>(local) + 1;
        }
        own_.pid.store(::getpid(), std::memory_order_relaxed);
        own_.pid_namespace.store(pid_namespace(), std::memory_order_relaxed);
        // Yama's default lets only a parent attach; the peers are siblings.
        ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    }

    status write_private(world_rank peer, std::uint64_t remote_address, const void *source,
                         std::size_t nbytes) override {
        return attach(::process_vm_writev, "process_vm_writev", peer, remote_address,
                      const_cast<void *>(source), nbytes);
    }

    status read_private(world_rank peer, std::uint64_t remote_address, void *destination,
                        std::size_t nbytes) override {
        return attach(::process_vm_readv, "process_vm_readv", peer, remote_address, destination,
                      nbytes);
    }

    bool try_send(world_rank peer, handler_id handler,
                  std::span<const std::byte> payload) override {
        control &target = control_of(local_of(peer));
        if (!target.receive_ring.try_push(self_, handler, payload)) {
            return false;
        }
        std::atomic_thread_fence(std::memory_order_seq_cst);
        if (target.sleepers.load(std::memory_order_relaxed) > 0 &&
            target.pollers.load(std::memory_order_relaxed) == 0) {
            ring_doorbell(target, wake_progress | wake_idle);
        }
        return true;
    }

    int poll(message_handler handle) override {
        if (own_.receive_ring.empty() || receiving_.test_and_set(std::memory_order_acquire)) {
            return 0;
        }
        int handled = 0;
        while (handled < max_batch && own_.receive_ring.try_pop(handle)) {
            ++handled;
        }
        receiving_.clear(std::memory_order_release);
        return handled;
    }

    bool has_messages() const override { return !own_.receive_ring.empty(); }

    std::uint32_t activity() const override {
        return own_.doorbell.load(std::memory_order_acquire);
    }

    void sleep(std::uint32_t seen, std::chrono::microseconds limit) override {
        sleep_unless([] { return false; }, seen, limit, wake_progress);
    }

    void wake() override { ring_doorbell(own_, wake_progress | wake_idle); }

    bool idle_wait(wait_kind what, std::uint32_t seen, std::chrono::microseconds limit,
                   function_ref<bool()> ready) override {
        std::uint32_t const for_store = what == wait_kind::store ? 1 : 0;
        own_.idle_waiters.fetch_add(1, std::memory_order_relaxed);
        own_.has_unwoken_waiter.store(true, std::memory_order_relaxed);
        store_sleepers_.fetch_add(for_store, std::memory_order_relaxed);
        bool const is_ready = sleep_unless(ready, seen, limit, wake_idle);
        store_sleepers_.fetch_sub(for_store, std::memory_order_relaxed);
        own_.idle_waiters.fetch_sub(1, std::memory_order_relaxed);
        return is_ready;
    }

    void wake_idle_waiters() override {
        std::atomic_thread_fence(std::memory_order_seq_cst);
        wake_idle_waiters_of(own_);
    }

    void wake_for_store(world_rank peer) override {
        if (local_rank const there = local_of(peer); there.value() >= 0) {
            wake_idle_waiters_of(control_of(there));
        }
    }

    void begin_polling() override { own_.pollers.fetch_add(1, std::memory_order_relaxed); }

    bool end_polling() override {
        own_.pollers.fetch_sub(1, std::memory_order_relaxed);
        std::atomic_thread_fence(std::memory_order_seq_cst);
        return !own_.receive_ring.empty();
    }

private:
    control &control_of(local_rank owner) const {
        return *reinterpret_cast<control *>(arena_.control(owner));
    }

    /// Calls ready() after announcing the sleep, and sleeps unless it is true; returns its result.
    bool sleep_unless(function_ref<bool()> ready, std::uint32_t seen,
                      std::chrono::microseconds limit, std::uint32_t reason) {
        own_.sleepers.fetch_add(1, std::memory_order_relaxed);
        std::atomic_thread_fence(std::memory_order_seq_cst);
        bool const is_ready = ready();
        if (!is_ready &&
            (own_.receive_ring.empty() || own_.pollers.load(std::memory_order_relaxed) > 0)) {
            futex_wait(own_.doorbell, seen, limit, reason);
        }
        own_.sleepers.fetch_sub(1, std::memory_order_relaxed);
        return is_ready;
    }

    static void ring_doorbell(control &target, std::uint32_t reasons) {
        target.doorbell.fetch_add(1, std::memory_order_release);
        futex_wake_all(target.doorbell, reasons);
    }

    /// One wake per sleep: the woken thread needs a moment to get a core.
    static void wake_idle_waiters_of(control &target) {
        if (target.idle_waiters.load(std::memory_order_relaxed) > 0 &&
            target.has_unwoken_waiter.load(std::memory_order_relaxed) &&
            target.has_unwoken_waiter.exchange(false, std::memory_order_relaxed)) {
            ring_doorbell(target, wake_idle);
        }
    }

    template <typename Call>
    status attach(Call call, const char *name, world_rank peer, std::uint64_t remote_address,
                  void *local, std::size_t nbytes) {
        if (!cross_memory_attach_) {
            return error(OMPX_ERR_UNSUPPORTED, "cross-memory attach is switched off (DIOMP_CMA)");
        }
        control const &there_control = control_of(local_of(peer));
        if (there_control.pid_namespace.load(std::memory_order_relaxed) !=
            own_.pid_namespace.load(std::memory_order_relaxed)) {
            // Its number would be that of another process here.
            return error(OMPX_ERR_UNSUPPORTED, "the other rank is in another PID namespace");
        }
        pid_t const pid = there_control.pid.load(std::memory_order_relaxed);
        std::size_t done = 0;
        while (done < nbytes) {
            iovec const here{static_cast<std::byte *>(local) + done, nbytes - done};
            iovec const there{reinterpret_cast<void *>(remote_address + done), nbytes - done};
            ssize_t const moved = call(pid, &here, 1, &there, 1, 0);
            if (moved > 0) {
                done += static_cast<std::size_t>(moved);
                continue;
            }
            if (moved < 0 && (errno == EPERM || errno == ENOSYS)) {
                return error(OMPX_ERR_UNSUPPORTED, fmt::format("{} is not permitted here", name));
            }
            std::string what = fmt::format("{} of {} bytes at {:#x} of rank {} (process {})", name,
                                           nbytes, remote_address, peer.value(), pid);
            if (moved < 0 && errno == ESRCH) { // the launcher knows why it has ended
                return error(OMPX_ERR_PEER, std::move(what) + ": it has ended");
            }
            if (moved == 0 || errno == EFAULT) {
                return error(OMPX_ERR_ADDRESS,
                             std::move(what) + ": one of the two has no such memory there, or it "
                                               "does not allow this access",
                             "see whether the memory was unmapped or is read-only");
            }
            return system_error(std::move(what), errno);
        }
        return {};
    }

    /// -1 for a rank of another node.
    [[nodiscard]] local_rank local_of(world_rank peer) const {
        return local_rank{peers_[peer.index()] - 1};
    }

    const arena &arena_;
    world_rank self_;
    bool cross_memory_attach_;
    control &own_;
    std::atomic<std::uint32_t> &store_sleepers_;
    lazy_array<std::int32_t> peers_; ///< [world rank] local rank plus one; 0: on another node
    std::atomic_flag receiving_;
};

} // namespace

std::size_t control_bytes() { return (sizeof(control) + page_bytes - 1) / page_bytes * page_bytes; }

result<std::unique_ptr<node_transport>> create(launch::launcher &launcher, const arena &arena,
                                               bool cross_memory_attach) {
    auto made = std::make_unique<shm_transport>(launcher.info(), arena, cross_memory_attach);
    if (launcher.info().size > 1) {
        // Every process id is in the control areas before any rank uses one.
        DIOMP_TRY(launcher.fence());
    }
    return std::unique_ptr<node_transport>(std::move(made));
}

} // namespace diomp::transport::shm
