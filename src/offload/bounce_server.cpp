// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/internal/bounce_server.h"

#include "base/log.h"
#include "memory/memory.h"
#include "messaging/call.h"
#include "offload/device_segment.h"
#include "offload/internal/chunks.h"
#include "offload/internal/segment_memory.h"
#include "offload/variables.h"
#include "rma/blocking_transfers.h"
#include "rma/rma.h"

#include <fmt/core.h>

#include <cstring>

namespace diomp::offload {

using rma::direction;
using rma::run;

bounce_server::bounce_server(const segment_table &own, const exposed_variables &exposed,
                             memory::address_space &space, messaging::engine &engine,
                             messaging::call_service &calls, rma::transfers &transfers,
                             stream_copies &copies)
    : own_(own), exposed_(exposed), space_(space), calls_(calls), transfers_(transfers),
      copies_(copies), request_handler_(engine.add_handler(
                           [this](const transport::message &incoming) { on_request(incoming); })),
      jobs_("diomp-bounce", true, [this] { serve(); }) {}

void bounce_server::on_request(const transport::message &incoming) {
    copy_job added{incoming.source, {}};
    std::memcpy(&added.args, incoming.payload.data(), sizeof(added.args));
    jobs_.push(added);
}

void bounce_server::serve() {
    // A put whose device copy overlaps with fetching the next chunk.
    std::optional<inflight_copy> last;
    std::optional<copy_job> next;
    while (jobs_.next(next, last.has_value())) {
        std::optional<inflight_copy> started_copy;
        if (next) {
            auto started = execute(*next);
            if (!started) {
                send_reply(*next, started.take_failure());
            } else if (!started.value()) {
                send_reply(*next, {});
            } else {
                started_copy.emplace(std::move(*started.value()));
            }
        }
        if (last) {
            send_reply(last->what, copies_.wait_for(last->on, last->copy));
            last.reset();
        }
        if (started_copy) {
            last.emplace(std::move(*started_copy));
        }
    }
}

void bounce_server::send_reply(const copy_job &what, status outcome) {
    if (!outcome) {
        log(log_level::warn, "a transfer of rank {} with memory of device {}: {}",
            what.requester.value(), what.args.device, outcome.failure().message());
    }
    calls_.reply(what.requester, what.args.header.id,
                 bounce_reply{outcome ? 0 : outcome.failure().code()});
}

std::optional<bounce_server::target_range> bounce_server::find(const bounce_request &args) const {
    device_segment const *const segment = own_.find(args.device);
    auto *const address = reinterpret_cast<std::byte *>(args.address);
    auto const offset = segment == nullptr || segment->memory() == nullptr
                            ? std::nullopt
                            : segment->offset_of(address);
    if (!offset) {
        auto const found = exposed_.find(args.device, args.address);
        return found ? std::optional(target_range{address, found->nbytes_left, found->on})
                     : std::nullopt;
    }
    auto const what = segment->find(*offset);
    return what ? std::optional(target_range{address, what->nbytes - (*offset - what->offset),
                                             &segment->memory()->on()})
                : std::nullopt;
}

result<std::optional<bounce_server::inflight_copy>> bounce_server::execute(const copy_job &what) {
    bounce_request const &args = what.args;
    auto const held = exposed_.hold();
    auto const at = find(args);
    if (!at || (args.num_runs == 0 && args.nbytes > at->nbytes_left)) {
        return error(OMPX_ERR_ADDRESS,
                     fmt::format("no allocation of {} bytes at {:#x}", args.nbytes, args.address));
    }
    if (args.num_runs > 0) {
        DIOMP_TRY(execute_runs(what, *at));
        return std::optional<inflight_copy>();
    }
    accelerator const &on = *at->on;
    std::byte *const address = at->address;
    auto buffers = copies_.pinned().acquire(on);
    DIOMP_TRY(buffers);
    std::byte *const slot = buffers.value().base();
    auto const location = space_.location_at(what.requester, args.staging);
    if (args.dir == direction::put) {
        DIOMP_TRY(transfers_.blocking().move_at(direction::get, what.requester, location, slot,
                                                args.nbytes));
        auto started = on.streams->copy(on.id, address, slot, args.nbytes);
        DIOMP_TRY(started);
        return std::optional(inflight_copy{what, on, buffers.take(), started.take()});
    }
    DIOMP_TRY(copies_.copy(on, slot, address, args.nbytes));
    DIOMP_TRY(
        transfers_.blocking().move_at(direction::put, what.requester, location, slot, args.nbytes));
    DIOMP_TRY(transfers_.flush(what.requester));
    return std::optional<inflight_copy>();
}

status bounce_server::execute_runs(const copy_job &what, const target_range &array) {
    bounce_request const &args = what.args;
    std::size_t const list_bytes = args.num_runs * sizeof(listed_run);
    if (args.nbytes > chunk_bytes || list_bytes > args.nbytes) {
        return error(OMPX_ERR_ARG, fmt::format("{} runs in {} bytes", args.num_runs, args.nbytes));
    }
    bool const is_put = args.dir == direction::put;
    auto buffers = copies_.pinned().acquire(*array.on);
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
    DIOMP_TRY(copies_.copy_runs(args.dir, *array.on, array.address, slot, runs));
    if (!is_put) {
        location = space_.location_at(what.requester, args.staging + list_bytes);
        DIOMP_TRY(transfers_.blocking().move_at(direction::put, what.requester, location,
                                                slot + list_bytes, data - list_bytes));
        DIOMP_TRY(transfers_.flush(what.requester));
    }
    return {};
}

} // namespace diomp::offload
