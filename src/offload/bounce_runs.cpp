// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Boxes through host memory: their runs, short as they may be, travel packed, so that a piece has
// as many of them as fit. To an owner they come with a list of where they belong.
#include "offload/bounce_pieces.h"

#include <fmt/core.h>

#include <cstring>

namespace diomp::offload {
namespace {

using rma::direction;
using rma::run;

/// In a slot, before the data.
struct listed_run {
    std::uint64_t offset = 0; ///< from the beginning of the array on the device
    std::uint64_t nbytes = 0;
};

/// Runs that a piece holds. `local` is where they are in the piece's data.
struct packed_runs {
    std::vector<run> runs; ///< in their order, with places in both arrays
    std::size_t nbytes = 0;
};

/// Cuts runs into batches of at most a piece, each run with `overhead` bytes beside it.
std::vector<packed_runs> pack(std::span<const run> runs, std::size_t overhead) {
    // What is left of a piece is not worth a part of a run.
    constexpr std::size_t least_part = 4096;
    std::vector<packed_runs> batches;
    std::size_t room = 0;
    for (run left : runs) {
        while (left.nbytes > 0) {
            if (room < overhead + std::min(left.nbytes, least_part)) {
                batches.emplace_back();
                room = piece_bytes;
            }
            std::size_t const nbytes = std::min(left.nbytes, room - overhead);
            batches.back().runs.push_back({left.remote, left.local, nbytes});
            batches.back().nbytes += nbytes;
            room -= nbytes + overhead;
            left = {left.remote + nbytes, left.local + nbytes, left.nbytes - nbytes};
        }
    }
    return batches;
}

/// The same runs between the data of a piece, now remote, and the local array.
std::vector<run> to_local(const packed_runs &batch, std::size_t data_begin) {
    std::vector<run> made;
    made.reserve(batch.runs.size());
    for (const run &each : batch.runs) {
        made.push_back({data_begin, each.local, each.nbytes});
        data_begin += each.nbytes;
    }
    return made;
}

/// And between the remote array and the data of a piece, now local.
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

status bounce::copy_runs(direction way, const accelerator &by, std::byte *there, std::byte *here,
                         std::span<const run> runs) {
    bool const is_put = way == direction::put;
    std::vector<device::ticket> going;
    going.reserve(runs.size());
    status outcome;
    for (const run &each : runs) {
        std::byte *const dst = is_put ? there + each.remote : here + each.local;
        const std::byte *const src = is_put ? here + each.local : there + each.remote;
        auto started = by.streams->copy(by.id, dst, src, each.nbytes);
        if (!started) {
            outcome = started.take_failure();
            break;
        }
        going.push_back(started.take());
    }
    for (const device::ticket &each : going) { // after an error too: they use the memory
        keep_first(outcome, wait_for(by, each));
    }
    return outcome;
}

status bounce::copy_end_runs(direction way, const end &local, std::byte *piece_begin,
                             std::span<const run> runs) {
    if (local.on != nullptr) {
        return copy_runs(way, *local.on, piece_begin, local.address, runs);
    }
    for (const run &each : runs) {
        std::byte *const there = piece_begin + each.remote;
        std::byte *const here = local.address + each.local;
        std::memcpy(way == direction::put ? there : here, way == direction::put ? here : there,
                    each.nbytes);
    }
    return {};
}

status bounce::through_host(direction way, const end &here, std::span<const run> runs,
                            packed_function move) {
    auto through = take_lane(*here.on);
    DIOMP_TRY(through);
    std::byte *const slot = through.value().base();
    for (const packed_runs &batch : pack(runs, 0)) {
        auto const local = to_local(batch, 0);
        auto const remote = to_remote(batch, 0);
        if (way == direction::put) {
            DIOMP_TRY(copy_runs(way, *here.on, slot, here.address, local));
            DIOMP_TRY(move(slot, remote));
        } else {
            DIOMP_TRY(move(slot, remote));
            DIOMP_TRY(copy_runs(way, *here.on, slot, here.address, local));
        }
    }
    return {};
}

status bounce::ask_owner(direction way, world_rank owner, int device, std::uint64_t address,
                         const end &local, std::span<const run> runs) {
    std::lock_guard const guard(asking_);
    auto buffer = staging_for(local);
    DIOMP_TRY(buffer);
    auto const batches = pack(runs, sizeof(listed_run));
    auto const batch_of = [&](const piece &which) -> const packed_runs & {
        return batches[which.begin / piece_bytes];
    };
    auto const data_begin = [](const packed_runs &batch) {
        return batch.runs.size() * sizeof(listed_run);
    };
    auto const start = [&](const piece &next) -> result<conduit::call_service::open_call> {
        packed_runs const &batch = batch_of(next);
        std::size_t at = 0;
        for (const run &each : batch.runs) {
            listed_run const entry{each.remote, each.nbytes};
            std::memcpy(next.slot + at, &entry, sizeof(entry));
            at += sizeof(entry);
        }
        if (way == direction::put) {
            DIOMP_TRY(copy_end_runs(way, local, next.slot, to_local(batch, at)));
        }
        request asked;
        asked.address = address;
        asked.staging = reinterpret_cast<std::uintptr_t>(next.slot);
        asked.nbytes = static_cast<std::uint32_t>(at + batch.nbytes);
        asked.num_runs = static_cast<std::uint32_t>(batch.runs.size());
        asked.device = device;
        asked.way = way;
        return calls_.start(owner, request_handler_, asked);
    };
    auto const wait = [&](const piece &each, const conduit::call_service::open_call &call) {
        return wait_for_owner(owner, call, batch_of(each).nbytes);
    };
    auto const finish = [&](const piece &done) -> status {
        packed_runs const &batch = batch_of(done);
        return way == direction::get
                   ? copy_end_runs(way, local, done.slot, to_local(batch, data_begin(batch)))
                   : status();
    };
    return in_pieces(buffer.value(), depth, batches.size() * piece_bytes, start, wait, finish);
}

status bounce::carry_out_runs(const job &what, const found &array) {
    request const &asked = what.asked;
    std::size_t const list_bytes = asked.num_runs * sizeof(listed_run);
    if (asked.nbytes > piece_bytes || list_bytes > asked.nbytes) {
        return error(OMPX_ERR_ARG,
                     fmt::format("{} runs in {} bytes", asked.num_runs, asked.nbytes));
    }
    bool const is_put = asked.way == direction::put;
    auto through = take_lane(*array.on);
    DIOMP_TRY(through);
    std::byte *const slot = through.value().base();
    auto place = space_.place_at(what.asker, asked.staging);
    DIOMP_TRY(transfers_.move_at(direction::get, what.asker, place, slot,
                                 is_put ? asked.nbytes : list_bytes));
    std::vector<run> runs;
    runs.reserve(asked.num_runs);
    std::size_t data = list_bytes;
    for (std::size_t at = 0; at < list_bytes; at += sizeof(listed_run)) {
        listed_run entry;
        std::memcpy(&entry, slot + at, sizeof(entry));
        if (entry.offset > array.left || entry.nbytes > array.left - entry.offset ||
            entry.nbytes > asked.nbytes - data) {
            return error(OMPX_ERR_ADDRESS, fmt::format("there is nothing of {} bytes at {:#x}",
                                                       entry.nbytes, asked.address + entry.offset));
        }
        runs.push_back({entry.offset, data, entry.nbytes});
        data += entry.nbytes;
    }
    DIOMP_TRY(copy_runs(asked.way, *array.on, array.address, slot, runs));
    if (!is_put) {
        place = space_.place_at(what.asker, asked.staging + list_bytes);
        DIOMP_TRY(transfers_.move_at(direction::put, what.asker, place, slot + list_bytes,
                                     data - list_bytes));
        DIOMP_TRY(transfers_.flush(what.asker));
    }
    return {};
}

} // namespace diomp::offload
