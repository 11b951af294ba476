// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "conduit/shm/shm.h"

#include "base/cpu.h"
#include "conduit/shm/futex.h"
#include "conduit/shm/inbox.h"

#include <fmt/core.h>

#include <cerrno>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>
#include <vector>

namespace diomp::conduit::shm {
namespace {

/// What a rank shows to the others of its node. Lies in zeroed shared memory.
struct control {
    /// Waking. A sender that finds sleepers and no pollers rings; it reads both counters after a
    /// full fence that follows its push, and they are written before a full fence that precedes the
    /// receiver's look at the inbox: one of the two sees the other.
    alignas(cache_line_bytes) std::atomic<std::uint32_t> doorbell;
    std::atomic<std::uint32_t> sleepers;
    std::atomic<std::uint32_t> pollers;
    std::atomic<std::int32_t> pid;
    /// Threads in nap(), and whether one has come since they were last woken.
    std::atomic<std::uint32_t> nappers;
    std::atomic<bool> nappers_wait;
    /// Of the first rank of the node: threads in nap() on the node that wait for a store. A line of
    /// its own, which all ranks have in their caches while none sleeps.
    alignas(cache_line_bytes) std::atomic<std::uint32_t> store_sleepers;
    inbox box;
};

/// Why a thread that sleeps on its rank's doorbell is woken.
constexpr std::uint32_t for_progress = 1;
constexpr std::uint32_t for_napper = 2;

constexpr std::size_t page_bytes = 4096;
/// Messages served in one go: a flood must not keep one thread for ever.
constexpr int max_batch = 64;

class shm_conduit final : public conduit {
public:
    shm_conduit(const launch::job_info &job, const window &window, const conduit_options &options)
        : window_(window), self_(job.rank), own_(control_of(job.local)),
          store_sleepers_(control_of(local_rank{0}).store_sleepers) {
        abilities_.name = "shm";
        abilities_.reaches_private_memory = options.cross_memory_attach;
        peers_.resize(static_cast<std::size_t>(job.size));
        for (std::size_t local = 0; local < job.local_ranks.size(); ++local) {
            peers_[job.local_ranks[local].index()] = local_rank{static_cast<int>(local)};
        }
        own_.pid.store(::getpid(), std::memory_order_relaxed);
        // Yama's default lets only a parent attach; our peers are siblings.
        ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    }

    const capabilities &abilities() const override { return abilities_; }

    std::byte *direct_base(world_rank peer) const override {
        return peers_[peer.index()].value() < 0 ? nullptr : window_.slot(peer);
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

    std::size_t max_message_bytes(world_rank /*peer*/) const override {
        return inbox::payload_bytes;
    }

    std::string describe_path(world_rank peer) const override {
        return peer == self_ ? "self" : "shm";
    }

    bool try_send(world_rank peer, handler_id handler,
                  std::span<const std::byte> payload) override {
        control &target = control_of(peers_[peer.index()]);
        if (!target.box.try_push(self_, handler, payload)) {
            return false;
        }
        std::atomic_thread_fence(std::memory_order_seq_cst);
        if (target.sleepers.load(std::memory_order_relaxed) > 0 &&
            target.pollers.load(std::memory_order_relaxed) == 0) {
            ring(target, for_progress | for_napper);
        }
        return true;
    }

    int poll(message_sink sink) override {
        if (own_.box.empty() || receiving_.test_and_set(std::memory_order_acquire)) {
            return 0;
        }
        int handled = 0;
        while (handled < max_batch && own_.box.try_pop(sink)) {
            ++handled;
        }
        receiving_.clear(std::memory_order_release);
        return handled;
    }

    std::uint32_t activity() const override {
        return own_.doorbell.load(std::memory_order_acquire);
    }

    void sleep(std::uint32_t seen, std::chrono::microseconds limit) override {
        sleep_unless([] { return false; }, seen, limit, for_progress);
    }

    void wake() override { ring(own_, for_progress | for_napper); }

    bool nap(awaited what, std::uint32_t seen, std::chrono::microseconds limit,
             function_ref<bool()> ready) override {
        std::uint32_t const for_store = what == awaited::store ? 1 : 0;
        own_.nappers.fetch_add(1, std::memory_order_relaxed);
        own_.nappers_wait.store(true, std::memory_order_relaxed);
        store_sleepers_.fetch_add(for_store, std::memory_order_relaxed);
        bool const is_ready = sleep_unless(ready, seen, limit, for_napper);
        store_sleepers_.fetch_sub(for_store, std::memory_order_relaxed);
        own_.nappers.fetch_sub(1, std::memory_order_relaxed);
        return is_ready;
    }

    void wake_napping() override {
        std::atomic_thread_fence(std::memory_order_seq_cst);
        wake_nappers_of(own_);
    }

    const std::atomic<std::uint32_t> &store_sleepers() const override { return store_sleepers_; }

    void wake_for_store(world_rank peer) override {
        if (local_rank const there = peers_[peer.index()]; there.value() >= 0) {
            wake_nappers_of(control_of(there));
        }
    }

    void begin_polling() override { own_.pollers.fetch_add(1, std::memory_order_relaxed); }

    bool end_polling() override {
        own_.pollers.fetch_sub(1, std::memory_order_relaxed);
        std::atomic_thread_fence(std::memory_order_seq_cst);
        return !own_.box.empty();
    }

private:
    control &control_of(local_rank owner) const {
        return *reinterpret_cast<control *>(window_.control(owner));
    }

    /// Asks first whether that is needed, after announcing the sleep; true: it was not.
    bool sleep_unless(function_ref<bool()> ready, std::uint32_t seen,
                      std::chrono::microseconds limit, std::uint32_t reason) {
        own_.sleepers.fetch_add(1, std::memory_order_relaxed);
        std::atomic_thread_fence(std::memory_order_seq_cst);
        bool const is_ready = ready();
        if (!is_ready && (own_.box.empty() || own_.pollers.load(std::memory_order_relaxed) > 0)) {
            futex_wait(own_.doorbell, seen, limit, reason);
        }
        own_.sleepers.fetch_sub(1, std::memory_order_relaxed);
        return is_ready;
    }

    static void ring(control &target, std::uint32_t reasons) {
        target.doorbell.fetch_add(1, std::memory_order_release);
        futex_wake_all(target.doorbell, reasons);
    }

    /// One ring per sleep: it takes a moment until the woken thread has a core.
    static void wake_nappers_of(control &target) {
        if (target.nappers.load(std::memory_order_relaxed) > 0 &&
            target.nappers_wait.load(std::memory_order_relaxed) &&
            target.nappers_wait.exchange(false, std::memory_order_relaxed)) {
            ring(target, for_napper);
        }
    }

    template <typename Call>
    status attach(Call call, const char *name, world_rank peer, std::uint64_t remote_address,
                  void *local, std::size_t nbytes) {
        if (!abilities_.reaches_private_memory) {
            return error(OMPX_ERR_UNSUPPORTED, "cross-memory attach is switched off (DIOMP_CMA)");
        }
        pid_t const pid = control_of(peers_[peer.index()]).pid.load(std::memory_order_relaxed);
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
            return system_error(fmt::format("{} of {} bytes at {:#x} of rank {} (process {})", name,
                                            nbytes, remote_address, peer.value(), pid),
                                moved < 0 ? errno : EFAULT);
        }
        return {};
    }

    const window &window_;
    world_rank self_;
    control &own_;
    std::atomic<std::uint32_t> &store_sleepers_;
    capabilities abilities_;
    std::vector<local_rank> peers_; ///< [world rank]
    std::atomic_flag receiving_;
};

} // namespace

std::size_t control_bytes() { return (sizeof(control) + page_bytes - 1) / page_bytes * page_bytes; }

result<std::unique_ptr<conduit>> create(launch::launcher &launcher, const window &window,
                                        const conduit_options &options) {
    auto made = std::make_unique<shm_conduit>(launcher.info(), window, options);
    if (launcher.info().size > 1) {
        // Every process id stands in the control areas before anybody uses one.
        DIOMP_TRY(launcher.fence());
    }
    return std::unique_ptr<conduit>(std::move(made));
}

} // namespace diomp::conduit::shm
