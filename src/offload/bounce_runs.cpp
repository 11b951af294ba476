// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Boxes through host memory. Runs of any length are packed, so that a chunk holds as many as fit.
// An owner gets a list of their destinations with each chunk.
#include "memory/memory.h"
#include "offload/internal/bounce_chunks.h"

#include <fmt/core.h>

#include <cstring>

namespace diomp::offload {
namespace {

using rma::direction;
using rma::run;

/// An entry of the list that precedes the data in a slot.
struct listed_run {
    std::uint64_t offset = 0; ///< offset from the beginning of the array on the device
    std::uint64_t nbytes = 0;
};

/// The runs in a chunk.
struct packed_runs {
    std::vector<run> runs; ///< in order, with offsets in both arrays
    std::size_t nbytes = 0;
};

/// Cuts runs into batches of at most one chunk, each run with `overhead` additional bytes.
std::vector<packed_runs> pack(std::span<const run> runs, std::size_t overhead) {
    // A smaller rest of a chunk is not filled with a part of a run.
    constexpr std::size_t min_part_bytes = 4096;
    std::vector<packed_runs> batches;
    std::size_t space = 0;
    for (run left : runs) {
        while (left.nbytes > 0) {
            if (space < overhead + std::min(left.nbytes, min_part_bytes)) {
                batches.emplace_back();
                space = chunk_bytes;
            }
            std::size_t const nbytes = std::min(left.nbytes, space - overhead);
            batches.back().runs.push_back({left.remote, left.local, nbytes});
            batches.back().nbytes += nbytes;
            space -= nbytes + overhead;
            left = {left.remote + nbytes, left.local + nbytes, left.nbytes - nbytes};
        }
    }
    return batches;
}

/// The runs of a batch between its data in a chunk (the remote side) and the local array.
std::vector<run> to_local(const packed_runs &batch, std::size_t data_begin) {
    std::vector<run> made;
    made.reserve(batch.runs.size());
    for (const run &each : batch.runs) {
        made.push_back({data_begin, each.local, each.nbytes});
        data_begin += each.nbytes;
    }
    return made;
}

/// The runs of a batch between the remote array and its data in a chunk (the local side).
std::vector<run> to_remote(const packed_runs &batch, std::size_t data_begin) {
    std::vector<run> made;
    made.reserve(batch.runs.size());
    for (const run &each : batch.runs) {
        made.push_back({each.remote, data_begin, each.nbytes});
        data_begin += each.nbytes;
    }
    return made;
}

} // namespace

status bounce::copy_runs(direction dir, const accelerator &by, std::byte *there, std::byte *here,
                         std::span<const run> runs) {
    bool const is_put = dir == direction::put;
    std::vector<device::ticket> in_flight;
    in_flight.reserve(runs.size());
    status outcome;
    for (const run &each : runs) {
        std::byte *const dst = is_put ? there + each.remote : here + each.local;
        const std::byte *const src = is_put ? here + each.local : there + each.remote;
        auto started = by.streams->copy(by.id, dst, src, each.nbytes);
        if (!started) {
            outcome = started.take_failure();
            break;
        }
        in_flight.push_back(started.take());
    }
    for (const device::ticket &each :
         in_flight) { // also after an error, since copies use the memory
        keep_first_error(outcome, wait_for(by, each));
    }
    return outcome;
}

status bounce::copy_chunk_runs(direction dir, const device_ptr &local, std::byte *chunk_begin,
                               std::span<const run> runs) {
    if (local.on != nullptr) {
        return copy_runs(dir, *local.on, chunk_begin, local.address, runs);
    }
    for (const run &each : runs) {
        std::byte *const there = chunk_begin + each.remote;
        std::byte *const here = local.address + each.local;
        std::memcpy(dir == direction::put ? there : here, dir == direction::put ? here : there,
                    each.nbytes);
    }
    return {};
}

status bounce::copy_runs_through_host(direction dir, const device_ptr &here,
                                      std::span<const run> runs, packed_function move) {
    auto buffers = acquire_pinned_pair(*here.on);
    DIOMP_TRY(buffers);
    std::byte *const slot = buffers.value().base();
    for (const packed_runs &batch : pack(runs, 0)) {
        auto const local = to_local(batch, 0);
        auto const remote = to_remote(batch, 0);
        if (dir == direction::put) {
            DIOMP_TRY(copy_runs(dir, *here.on, slot, here.address, local));
            DIOMP_TRY(move(slot, remote));
        } else {
            DIOMP_TRY(move(slot, remote));
            DIOMP_TRY(copy_runs(dir, *here.on, slot, here.address, local));
        }
    }
    return {};
}

status bounce::request_from_owner(direction dir, world_rank owner, int device,
                                  std::uint64_t address, const device_ptr &local,
                                  std::span<const run> runs) {
    std::lock_guard const guard(request_mutex_);
    auto buffer = staging_for(local);
    DIOMP_TRY(buffer);
    auto const batches = pack(runs, sizeof(listed_run));
    auto const batch_of = [&](const chunk &which) -> const packed_runs & {
        return batches[which.begin / chunk_bytes];
    };
    auto const data_begin = [](const packed_runs &batch) {
        return batch.runs.size() * sizeof(listed_run);
    };
    auto const start = [&](const chunk &next) -> result<messaging::call_service::pending_call> {
        packed_runs const &batch = batch_of(next);
        std::size_t at = 0;
        for (const run &each : batch.runs) {
            listed_run const entry{each.remote, each.nbytes};
            std::memcpy(next.slot + at, &entry, sizeof(entry));
            at += sizeof(entry);
        }
        if (dir == direction::put) {
            DIOMP_TRY(copy_chunk_runs(dir, local, next.slot, to_local(batch, at)));
        }
        request args;
        args.address = address;
        args.staging = reinterpret_cast<std::uintptr_t>(next.slot);
        args.nbytes = static_cast<std::uint32_t>(at + batch.nbytes);
        args.num_runs = static_cast<std::uint32_t>(batch.runs.size());
        args.device = device;
        args.dir = dir;
        return calls_.start(owner, request_handler_, args);
    };
    auto const wait = [&](const chunk &each, const messaging::call_service::pending_call &call) {
        return wait_for_owner(owner, call, batch_of(each).nbytes);
    };
    auto const finish = [&](const chunk &done) -> status {
        packed_runs const &batch = batch_of(done);
        return dir == direction::get
                   ? copy_chunk_runs(dir, local, done.slot, to_local(batch, data_begin(batch)))
                   : status();
    };
    return run_pipeline(buffer.value(), pipeline_depth, batches.size() * chunk_bytes, start, wait,
                        finish);
}

status bounce::execute_runs(const copy_job &what, const target_range &array) {
    request const &args = what.args;
    std::size_t const list_bytes = args.num_runs * sizeof(listed_run);
    if (args.nbytes > chunk_bytes || list_bytes > args.nbytes) {
        return error(OMPX_ERR_ARG, fmt::format("{} runs in {} bytes", args.num_runs, args.nbytes));
    }
    bool const is_put = args.dir == direction::put;
    auto buffers = acquire_pinned_pair(*array.on);
    DIOMP_TRY(buffers);
    std::byte *const slot = buffers.value().base();
    auto location = space_.location_at(what.requester, args.staging);
    DIOMP_TRY(transfers_.blocking().move_at(direction::get, what.requester, location, slot,
                                            is_put ? args.nbytes : list_bytes));
    std::vector<run> runs;
    runs.reserve(args.num_runs);
    std::size_t data = list_bytes;
    for (std::size_t at = 0; at < list_bytes; at += sizeof(listed_run)) {
        listed_run entry;
        std::memcpy(&entry, slot + at, sizeof(entry));
        if (entry.offset > array.nbytes_left || entry.nbytes > array.nbytes_left - entry.offset ||
            entry.nbytes > args.nbytes - data) {
            return error(OMPX_ERR_ADDRESS, fmt::format("no allocation of {} bytes at {:#x}",
                                                       entry.nbytes, args.address + entry.offset));
        }
        runs.push_back({entry.offset, data, entry.nbytes});
        data += entry.nbytes;
    }
    DIOMP_TRY(copy_runs(args.dir, *array.on, array.address, slot, runs));
    if (!is_put) {
        location = space_.location_at(what.requester, args.staging + list_bytes);
        DIOMP_TRY(transfers_.blocking().move_at(direction::put, what.requester, location,
                                                slot + list_bytes, data - list_bytes));
        DIOMP_TRY(transfers_.flush(what.requester));
    }
    return {};
}

} // namespace diomp::offload
