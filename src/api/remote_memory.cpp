// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory of remote devices in the address space of a job.
#include "offload/remote_memory.h"

#include "api/internal/remote_client.h"
#include "api/internal/state.h"
#include "offload/remote/client.h"
#include "offload/remote/device_access.h"
#include "offload/remote/service_access.h"
#include "offload/remote/started_transfers.h"
#include "offload/service_devices.h"

#include <atomic>
#include <utility>

namespace {

using diomp::status;
using diomp::api::remote_client_guard;
using diomp::offload::transfer_start;
using diomp::rma::direction;
namespace remote = diomp::offload::remote;

/// Whether the runtime has used a device of this process, with or without regions.
std::atomic<bool> g_has_segment = false;

status devices_closed() {
    return diomp::error(OMPX_ERR_STATE, "the program has ended its use of remote devices",
                        "make the call before main returns");
}

/// The devices of the process's client. This process copies for other ranks after its main, too.
class job_devices final : public diomp::offload::service_devices {
public:
    std::optional<description> describe(int index) override {
        remote_client_guard const used(remote_client_guard::scope::job);
        return used.client() != nullptr ? remote::describe_gpu(*used.client(), index)
                                        : std::nullopt;
    }
    int num_devices() override {
        remote_client_guard const used(remote_client_guard::scope::job);
        return used.client() != nullptr ? static_cast<int>(used.client()->num_devices()) : 0;
    }
    diomp::result<std::uint64_t> allocate(int index, std::size_t nbytes) override {
        remote_client_guard const used(remote_client_guard::scope::job);
        g_has_segment.store(true, std::memory_order_relaxed);
        return used.client() != nullptr
                   ? remote::allocate_memory(*used.client(), index, nbytes)
                   : diomp::result<std::uint64_t>(devices_closed().take_failure());
    }
    std::uint64_t allocate_segment(int index, std::size_t nbytes,
                                   std::uint64_t preferred) override {
        remote_client_guard const used(remote_client_guard::scope::job);
        return used.client() != nullptr
                   ? remote::allocate_segment(*used.client(), index, nbytes, preferred)
                   : 0;
    }
    void release(int index, std::uint64_t address) override {
        remote_client_guard const used(remote_client_guard::scope::job);
        if (used.client() != nullptr) { // otherwise the session has ended
            remote::release_memory(*used.client(), index, address);
        }
    }
    status write(int index, std::uint64_t to, const void *from, std::size_t nbytes) override {
        remote_client_guard const used(remote_client_guard::scope::job);
        return used.client() != nullptr
                   ? remote::write_memory(*used.client(), index, to, from, nbytes)
                   : devices_closed();
    }
    status read(int index, void *to, std::uint64_t from, std::size_t nbytes) override {
        remote_client_guard const used(remote_client_guard::scope::job);
        return used.client() != nullptr
                   ? remote::read_memory(*used.client(), index, to, from, nbytes)
                   : devices_closed();
    }
    status copy(int index, std::uint64_t to, std::uint64_t from, std::size_t nbytes) override {
        remote_client_guard const used(remote_client_guard::scope::job);
        return used.client() != nullptr
                   ? remote::copy_memory(*used.client(), index, to, from, nbytes)
                   : devices_closed();
    }
};

/// The memory of the devices of the process's client.
class job_memory final : public diomp::offload::remote_memory {
public:
    std::optional<range> claim_segment(int index) override {
        remote_client_guard const used;
        g_has_segment.store(true, std::memory_order_relaxed);
        return used.client() != nullptr ? remote::claim_segment(*used.client(), index)
                                        : std::nullopt;
    }
    bool has(std::uint64_t address) override {
        remote_client_guard const used;
        return used.client() != nullptr && used.client()->ranks().session_with(address);
    }
    void return_pages(int index, range of) override {
        remote_client_guard const used;
        if (used.client() != nullptr) {
            remote::return_pages(*used.client(), index, of);
        }
    }
    bool stop_deferring(int index) override {
        remote_client_guard const used;
        return used.client() == nullptr || remote::stop_deferring(*used.client(), index);
    }
    status move(direction dir, std::uint64_t device_address, std::byte *here,
                std::span<const diomp::rma::run> runs, transfer_start *start) override {
        remote_client_guard const used;
        if (used.client() == nullptr) {
            return devices_closed();
        }
        DIOMP_TRY(remote::move(*used.client(), dir, device_address, here, runs, start));
        guard_poll(start);
        return {};
    }
    status move_between(direction dir, std::uint64_t there, int index, std::uint64_t here,
                        std::span<const diomp::rma::run> runs, transfer_start *start) override {
        remote_client_guard const used;
        if (used.client() == nullptr) {
            return devices_closed();
        }
        DIOMP_TRY(remote::move_between(*used.client(), dir, there, index, here, runs, start));
        guard_poll(start);
        return {};
    }
    diomp::result<bool> poll(errors which) override {
        remote_client_guard const used(remote_client_guard::scope::job);
        return used.client() != nullptr ? used.client()->started().poll(which)
                                        : diomp::result<bool>(true);
    }
    status check(int index, range used) override {
        remote_client_guard const guard;
        return guard.client() != nullptr ? remote::check(*guard.client(), index, used)
                                         : devices_closed();
    }
    bool lends_segment(int index) override {
        remote_client_guard const used(remote_client_guard::scope::job);
        return used.client() != nullptr && remote::lends_segment(*used.client(), index);
    }
    bool has_collectives(int index) override {
        remote_client_guard const used;
        return used.client() != nullptr && used.client()->has_runtime(index);
    }
    status run_call(int index, std::string_view call) override {
        remote_client_guard const used;
        return used.client() != nullptr ? remote::run_call(*used.client(), index, call)
                                        : devices_closed();
    }
    bool describe_group(int index, std::string_view group) override {
        remote_client_guard const used;
        return used.client() != nullptr && remote::describe_group(*used.client(), index, group);
    }
    diomp::offload::service_devices &devices() override { return devices_; }

private:
    /// An event may be tested after the client has ended.
    static void guard_poll(transfer_start *start) {
        if (start != nullptr && start->poll) {
            start->poll = [poll = std::move(start->poll)]() -> std::optional<status> {
                remote_client_guard const used(remote_client_guard::scope::job);
                return used.client() != nullptr ? poll() : std::optional(devices_closed());
            };
        }
    }

    job_devices devices_;
};

} // namespace

bool diomp::api::has_remote_segment() { return g_has_segment.load(std::memory_order_relaxed); }

diomp::result<diomp::offload::remote_memory *>
diomp::api::join_remote_devices(launch::launcher &job) {
    DIOMP_TRY(connect_remote_client(job));
    static auto &memory = *new job_memory;
    return &memory;
}
