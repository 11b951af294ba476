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
    inbox box;
};

constexpr std::size_t page_bytes = 4096;
/// Messages served in one go: a flood must not keep one thread for ever.
constexpr int max_batch = 64;

class shm_conduit final : public conduit {
public:
    shm_conduit(const launch::job_info &job, const window &window, const conduit_options &options)
        : window_(window), self_(job.rank), own_(control_of(job.local)) {
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
            ring(target);
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
        own_.sleepers.fetch_add(1, std::memory_order_relaxed);
        std::atomic_thread_fence(std::memory_order_seq_cst);
        if (own_.box.empty() || own_.pollers.load(std::memory_order_relaxed) > 0) {
            futex_wait(own_.doorbell, seen, limit);
        }
        own_.sleepers.fetch_sub(1, std::memory_order_relaxed);
    }

    void wake() override { ring(own_); }

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

    static void ring(control &target) {
        target.doorbell.fetch_add(1, std::memory_order_release);
        futex_wake_all(target.doorbell);
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
