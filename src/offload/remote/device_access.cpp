// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/remote/device_access.h"

#include "base/log.h"
#include "messaging/pooled_completion.h"
#include "offload/remote/client.h"
#include "offload/remote/queue.h"
#include "offload/remote/session_control.h"
#include "offload/remote/started_transfers.h"
#include "transport/conduit.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstring>
#include <mutex>

namespace diomp::offload::remote {
namespace {

remote_device &device_at(client &of, int index) {
    return of.device(static_cast<std::size_t>(index));
}

/// The session with an address, when the regions of an own device that OpenMP treats as complete
/// are; the owner of another device has waited for its own. The queue of `by_queue_of` needs no
/// wait.
result<world_rank> session_with(client &by, std::uint64_t address,
                                const remote_device *by_queue_of = nullptr) {
    auto const owner = by.ranks().session_with(address);
    if (!owner) {
        return error(OMPX_ERR_ADDRESS,
                     fmt::format("{:#x} is in the memory of no remote device", address));
    }
    remote_device *const own = by.device_of(*owner);
    if (own != nullptr && own != by_queue_of) {
        DIOMP_TRY(by.wait_for_deferred(*own));
    }
    return *owner;
}

status move_runs(client &by, world_rank owner, rma::direction dir, std::uint64_t device_address,
                 std::byte *here, std::span<const rma::run> runs) {
    transport::rma_transport &network = *by.ranks().conduit().rma();
    messaging::pooled_completion completion;
    std::size_t nbytes = 0;
    for (rma::run const &each : runs) {
        nbytes += each.nbytes;
        DIOMP_TRY(dir == rma::direction::put
                      ? network.put(owner, device_address + each.remote, here + each.local,
                                    each.nbytes, completion.count())
                      : network.get(owner, device_address + each.remote, here + each.local,
                                    each.nbytes, completion.count()));
    }
    if (dir == rma::direction::put) {
        DIOMP_TRY(network.flush(owner, completion.count()));
    }
    return completion.wait(by.ranks().engine(), [&] {
        return fmt::format("transferring {} bytes {} it", nbytes,
                           dir == rma::direction::put ? "to" : "from");
    });
}

/// Copies runs between memory of slots() and memory of this process.
void copy_runs(rma::direction dir, std::byte *there, std::byte *here,
               std::span<const rma::run> runs) {
    for (rma::run const &each : runs) {
        std::byte *const remote = there + each.remote;
        std::byte *const local = here + each.local;
        bool const is_put = dir == rma::direction::put;
        std::memmove(is_put ? remote : local, is_put ? local : remote, each.nbytes);
    }
}

/// Transfers of up to this size are complete sooner than a session could be told of them.
constexpr std::size_t max_copied_at_once = std::size_t{64} << 10;

/// Whether this process makes a transfer of memory of `own`, which it shares, itself. A started one
/// may not wait for regions, and sessions have the acknowledgements of several travel together.
bool is_carried_here(client &by, remote_device &own, world_rank other, std::uint64_t here,
                     std::size_t nbytes, const transfer_start *start) {
    if (!by.slots().has(own.rank()) || !own.slot().has(here)) {
        return false;
    }
    return start == nullptr ||
           (by.slots().has(other) && nbytes <= max_copied_at_once && own.deferred().is_empty());
}

/// A transfer of is_carried_here() with the session `other`.
status carry_here(client &by, remote_device &own, world_rank other, rma::direction dir,
                  std::uint64_t there, std::uint64_t here, std::span<const rma::run> runs) {
    for (rma::run const &each : runs) {
        DIOMP_TRY(own.check(here + each.local, each.nbytes));
    }
    DIOMP_TRY(by.wait_for_deferred(own));
    if (own.has_failed()) {
        return error(OMPX_ERR_PEER, own.session().failure());
    }
    auto *const local = reinterpret_cast<std::byte *>(here);
    if (by.slots().has(other)) {
        copy_runs(dir, reinterpret_cast<std::byte *>(there), local, runs);
        DIOMP_TRY(by.slots().check_present(own.rank()));
        return by.slots().check_present(other);
    }
    return by.ranks().name_device(other, move_runs(by, other, dir, there, local, runs));
}

/// Whether this process makes the blocking transfers of all own processors.
bool shares_own_processors(client &by) {
    world const &ranks = by.ranks();
    auto const own = sessions_of(ranks.rank(), ranks.num_devices());
    std::vector<bool> const &is_gpu = ranks.gpus().is_gpu[ranks.rank().index()];
    bool shares_any = false;
    for (std::size_t i = 0; i < own.size(); ++i) {
        if (!is_gpu[i] && !by.slots().has(own[i])) {
            return false;
        }
        shares_any = shares_any || !is_gpu[i];
    }
    return shares_any;
}

/// How sessions of this client reach those of another one: "shm", "tcp" or "shm and tcp"; "": there
/// are none that do. Processors reach processors, GPUs those with their index.
std::string name_paths_between(client &by, world_rank to) {
    world &ranks = by.ranks();
    bool has_shared = false;
    bool has_other = false;
    std::vector<bool> const &own_gpus = ranks.gpus().is_gpu[ranks.rank().index()];
    std::vector<bool> const &their_gpus = ranks.gpus().is_gpu[to.index()];
    auto const own = sessions_of(ranks.rank(), ranks.num_devices());
    auto const theirs = sessions_of(to, ranks.num_devices());
    for (std::size_t i = 0; i < own.size(); ++i) {
        for (std::size_t k = 0; k < theirs.size(); ++k) {
            bool const are_gpus = i == k && by.has_runtime(static_cast<int>(i));
            if (own_gpus[i] != their_gpus[k] || (own_gpus[i] && !are_gpus)) {
                continue;
            }
            bool const is_shared =
                ranks.node_of(own[i]) == ranks.node_of(theirs[k]) ||
                (!own_gpus[i] && by.slots().has(own[i]) && by.slots().has(theirs[k]));
            has_shared = has_shared || is_shared;
            has_other = has_other || !is_shared;
        }
    }
    std::string const &name = ranks.conduit().name(); // "shm+tcp"
    std::string const network = name.substr(name.rfind('+') + 1);
    return has_shared && has_other ? "shm and " + network
           : has_shared            ? "shm"
           : has_other             ? network
                                   : "";
}

} // namespace

std::string describe_paths(client &by, world_rank owner) {
    if (by.segments().of_processor == 0) { // or no rank has any
        return {};
    }
    std::string text;
    std::size_t index = 0;
    for (world_rank const session : sessions_of(owner, by.ranks().num_devices())) {
        text += fmt::format(
            "{}remote device {} by {}", text.empty() ? "" : ", ", index,
            by.ranks().gpus().is_gpu[owner.index()][index] ? fmt::format("rank {}", owner.value())
            : by.slots().has(session)                      ? "shm"
                                      : by.ranks().conduit().describe_path(session));
        ++index;
    }
    std::string const between = name_paths_between(by, owner);
    if (!between.empty()) {
        text += fmt::format("; from own remote devices by {}{}", between,
                            shares_own_processors(by) ? "" : ", service to service");
    }
    return text;
}

std::optional<remote_memory::range> claim_segment(client &of, int index) {
    std::size_t const nbytes = of.segments().of_processor;
    if (!of.is_of_job() || nbytes == 0) {
        return std::nullopt;
    }
    auto const address = device_at(of, index).allocate(nbytes);
    if (!address) {
        log(log_level::warn, "{} gets no segment, so other ranks cannot access its memory: {}",
            device_at(of, index).label(), address.failure().message());
        return std::nullopt;
    }
    return remote_memory::range{reinterpret_cast<std::byte *>(address.value()), nbytes};
}

void return_pages(client &of, int index, remote_memory::range pages) {
    queue &last = of.acquire_queue(device_at(of, index));
    status returned = last.release_pages(
        device_memory::range{reinterpret_cast<std::uint64_t>(pages.base), pages.nbytes});
    of.release_queue(last);
    if (returned) {
        returned = of.wait_for_deferred(device_at(of, index));
    }
    if (!returned) {
        log(log_level::debug, "{}", returned.failure().message());
    }
}

bool stop_deferring(client &of, int index) {
    remote_device &device = device_at(of, index);
    deferred_work &deferred = device.deferred();
    deferred.set_enabled(false);
    if (deferred.is_empty() || device.has_failed()) {
        return true;
    }
    deferred_work::outstanding_wait &awaited = deferred.awaited();
    std::unique_lock const lock(awaited.mutex, std::try_to_lock);
    if (!lock) {
        return false; // another thread is here
    }
    if (awaited.by == nullptr) {
        awaited.by = &of.acquire_queue(device);
        static_cast<void>(awaited.by->order_after_all_deferred()); // fails if the device is lost
    }
    auto const done = awaited.by->test(std::chrono::microseconds(0));
    if (done && !done.value()) {
        return false;
    }
    of.release_queue(*awaited.by);
    awaited.by = nullptr;
    return deferred.is_empty() || device.has_failed();
}

status move(client &by, rma::direction dir, std::uint64_t device_address, std::byte *here,
            std::span<const rma::run> runs, transfer_start *start) {
    auto owner = session_with(by, device_address);
    DIOMP_TRY(owner);
    if (by.slots().has(owner.value())) {
        copy_runs(dir, reinterpret_cast<std::byte *>(device_address), here, runs);
        return by.slots().check_present(owner.value());
    }
    if (start != nullptr) {
        rma::run const &only = runs.front();
        return by.ranks().name_device(
            owner.value(),
            by.started().start_by_client(owner.value(), dir, device_address + only.remote,
                                         here + only.local, only.nbytes, *start));
    }
    return by.ranks().name_device(owner.value(),
                                  move_runs(by, owner.value(), dir, device_address, here, runs));
}

status move_between(client &by, rma::direction dir, std::uint64_t there, int index,
                    std::uint64_t here, std::span<const rma::run> runs, transfer_start *start) {
    remote_device &own = device_at(by, index);
    auto owner = session_with(by, there, &own);
    DIOMP_TRY(owner);
    if (is_carried_here(by, own, owner.value(), here, runs.front().nbytes, start)) {
        return carry_here(by, own, owner.value(), dir, there, here, runs);
    }
    bool const is_put = dir == rma::direction::put || owner.value() == own.rank();
    if (start != nullptr) {
        rma::run const &only = runs.front();
        std::uint64_t const at = here + only.local;
        std::uint64_t const other = there + only.remote;
        bool const is_get = dir == rma::direction::get;
        return by.started().start_copy(own, is_put ? operation::begin_copy : operation::begin_pull,
                                       owner.value(), is_get ? at : other, is_get ? other : at,
                                       only.nbytes, *start);
    }
    queue &carrier = by.acquire_queue(own);
    status done;
    for (rma::run const &each : runs) {
        std::uint64_t source = here + each.local;
        std::uint64_t destination = there + each.remote;
        if (dir == rma::direction::get) {
            std::swap(source, destination);
        }
        done = carrier.copy_in_job(is_put ? operation::copy : operation::pull, owner.value(),
                                   destination, source, each.nbytes);
        if (!done) {
            break;
        }
    }
    if (status waited = carrier.synchronize(); done && !waited) {
        done = std::move(waited);
    }
    by.release_queue(carrier);
    return done;
}

status check(client &of, int index, remote_memory::range used) {
    return device_at(of, index).check(reinterpret_cast<std::uint64_t>(used.base), used.nbytes);
}

bool describe_group(client &of, int index, std::string_view group) {
    session_control &session = device_at(of, index).session();
    packet_writer packet(frame::group);
    packet.bytes(group);
    auto const only = session.lock_requests();
    auto const reply = session.request(packet.take(), "describing a group");
    if (!reply) {
        return false; // the next call reports that the device is lost
    }
    packet_reader reader(reply.value());
    return reader.type<frame>() == frame::done && reader.number<std::uint64_t>() != 0;
}

status run_call(client &by, int index, std::string_view call) {
    remote_device &own = device_at(by, index);
    std::array<char, call_outcome_bytes> outcome{};
    queue &carrier = by.acquire_queue(own);
    status done = carrier.call(call, outcome);
    if (status waited = carrier.synchronize(); done && !waited) {
        done = std::move(waited);
    }
    by.release_queue(carrier);
    DIOMP_TRY(done);
    auto failure = decode_call_outcome({outcome.data(), outcome.size()});
    DIOMP_TRY(failure);
    if (!failure.value()) {
        return {};
    }
    call_error const &of = *failure.value();
    return error(static_cast<ompx_status>(of.code), fmt::format("{}: {}", own.label(), of.message),
                 of.remedy);
}

} // namespace diomp::offload::remote
