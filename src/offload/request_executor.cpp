// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/internal/request_executor.h"

#include "diomp/types.h"
#include "offload/internal/barrier_groups.h"
#include "offload/internal/region_error.h"
#include "offload/internal/segment_table.h"
#include "offload/internal/word_updates.h"
#include "offload/mover.h"
#include "rma/atomics.h"
#include "rma/rma.h"
#include "rma/signals.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

namespace diomp::offload {
namespace {

void *pointer(std::uint64_t address) {
    return reinterpret_cast<void *>(address); // NOLINT(performance-no-int-to-ptr)
}

status check_size(std::uint64_t nbytes, std::uint64_t max) {
    return nbytes <= max ? status{}
                         : error(OMPX_ERR_ARG, fmt::format("a request holds {} bytes", nbytes));
}

const char *function_of(std::uint32_t operation) {
    switch (operation) {
    case DIOMP_REQUEST_PUT:
    case DIOMP_REQUEST_PUT_INLINE:
        return "ompx_put";
    case DIOMP_REQUEST_GET:
    case DIOMP_REQUEST_GET_REPLY:
        return "ompx_get";
    case DIOMP_REQUEST_PUT_SIGNAL:
    case DIOMP_REQUEST_PUT_SIGNAL_INLINE:
        return "ompx_put_signal";
    case DIOMP_REQUEST_FETCH:
        return "ompx_atomic_fetch";
    case DIOMP_REQUEST_COMPARE_SWAP:
        return "ompx_atomic_compare_swap";
    case DIOMP_REQUEST_GROUP:
        return "ompx_barrier";
    default:
        return "ompx_fence";
    }
}

bool is_word32(ompx_type_t type) {
    return type == OMPX_INT32 || type == OMPX_UINT32 || type == OMPX_FLOAT;
}

std::size_t num_bytes(const diomp_request &what, std::uint32_t operation) {
    switch (operation) {
    case DIOMP_REQUEST_PUT:
    case DIOMP_REQUEST_GET:
    case DIOMP_REQUEST_PUT_SIGNAL:
        return what.field[4];
    case DIOMP_REQUEST_PUT_INLINE:
    case DIOMP_REQUEST_GET_REPLY:
        return what.detail;
    case DIOMP_REQUEST_PUT_SIGNAL_INLINE:
        return what.detail & 0xff;
    case DIOMP_REQUEST_FETCH:
    case DIOMP_REQUEST_COMPARE_SWAP:
        return is_word32(static_cast<ompx_type_t>(what.detail & 0xff)) ? 4 : 8;
    default:
        return 0;
    }
}

} // namespace

/// Failures of updates whose requests had no reply.
struct request_executor::late_failures {
    std::mutex mutex;                                           ///< leaf lock
    std::array<std::optional<region_error>, max_devices> first; ///< [device]
};

request_executor::request_executor(offload::mover &mover, rma::transfers &transfers,
                                   const segment_table &own, const alloc_directory &directory,
                                   messaging::engine &engine, messaging::call_service &calls,
                                   int num_ranks, request_observer on_request)
    : mover_(mover), transfers_(transfers),
      updates_(std::make_unique<word_updates>(own, engine, calls)),
      groups_(std::make_unique<barrier_groups>(directory, engine, calls)), num_ranks_(num_ranks),
      on_request_(std::move(on_request)), late_(std::make_unique<late_failures>()) {}

request_executor::~request_executor() = default;

void request_executor::set_groups(group_finder find) { groups_->set_finder(std::move(find)); }

status request_executor::prepare(const accelerator &on) {
    DIOMP_TRY(mover_.prepare_for_regions(on));
    updates_->prepare(on);
    return {};
}

status request_executor::finish() { return updates_->wait(); }

std::optional<region_error> request_executor::take_error(int device) {
    std::lock_guard const guard(late_->mutex);
    return std::exchange(late_->first[static_cast<std::size_t>(device)], std::nullopt);
}

status request_executor::execute(const diomp_request &what, const requesting_device &by,
                                 reply_values &reply) {
    if (!on_request_) {
        return run(what, by, reply);
    }
    auto const begin = std::chrono::steady_clock::now();
    status done = run(what, by, reply);
    auto const operation = static_cast<std::uint32_t>(what.operation % DIOMP_REQUEST_REPLY);
    on_request_({.function = function_of(operation),
                 .nbytes = num_bytes(what, operation),
                 .rank = operation == DIOMP_REQUEST_FENCE || operation == DIOMP_REQUEST_GROUP
                             ? -1
                             : what.rank,
                 .begin = begin,
                 .end = std::chrono::steady_clock::now()});
    return done;
}

status request_executor::run(const diomp_request &what, const requesting_device &by,
                             reply_values &reply) {
    if (what.operation % DIOMP_REQUEST_REPLY == DIOMP_REQUEST_FENCE) {
        DIOMP_TRY(updates_->wait());
        return transfers_.fence();
    }
    if (what.operation % DIOMP_REQUEST_REPLY == DIOMP_REQUEST_GROUP) {
        return groups_->describe_round(static_cast<ompx_group_t>(pointer(what.field[0])), by.device,
                                       what.field[1], reply.words);
    }
    if (what.rank < 0 || what.rank >= num_ranks_) {
        return error(OMPX_ERR_RANK, fmt::format("there is no rank {}", what.rank));
    }
    world_rank const rank(what.rank);
    auto const &field = what.field;
    switch (what.operation % DIOMP_REQUEST_REPLY) {
    case DIOMP_REQUEST_PUT:
        return put(rank, field[0], pointer(field[3]), by.device, field[4], by);
    case DIOMP_REQUEST_PUT_INLINE:
        DIOMP_TRY(check_size(what.detail, DIOMP_INLINE_PUT_BYTES));
        return put(rank, field[0], &field[1], -1, what.detail, by);
    case DIOMP_REQUEST_GET:
        return get(rank, field[0], pointer(field[3]), by.device, field[4], by);
    case DIOMP_REQUEST_GET_REPLY:
        DIOMP_TRY(check_size(what.detail, DIOMP_INLINE_REPLY_BYTES));
        return get(rank, field[0], reply.words.data(), -1, what.detail, by);
    case DIOMP_REQUEST_PUT_SIGNAL:
    case DIOMP_REQUEST_PUT_SIGNAL_INLINE:
        return put_signal(what, by);
    case DIOMP_REQUEST_FETCH:
        return fetch(rank, what, by, reply);
    case DIOMP_REQUEST_COMPARE_SWAP:
        return compare_swap(rank, what, by, reply);
    default:
        return error(OMPX_ERR_ARG, fmt::format("unknown request {}", what.operation));
    }
}

status request_executor::put(world_rank to, std::uint64_t remote, const void *local,
                             int local_device, std::uint64_t nbytes, const device &by) {
    translation unused;
    auto moved = mover_.move({.dir = rma::direction::put, .may_pin = false}, to,
                             {pointer(remote), memory_of(remote, by), "dst"},
                             {local, local_device, "src"}, nbytes, unused);
    DIOMP_TRY(moved);
    return {};
}

status request_executor::get(world_rank from, std::uint64_t remote, void *local, int local_device,
                             std::uint64_t nbytes, const device &by) {
    translation unused;
    auto moved = mover_.move({.dir = rma::direction::get, .may_pin = false}, from,
                             {pointer(remote), memory_of(remote, by), "src"},
                             {local, local_device, "dst"}, nbytes, unused);
    DIOMP_TRY(moved);
    return {};
}

status request_executor::put_signal(const diomp_request &what, const device &by) {
    world_rank const to(what.rank);
    bool const is_inline = what.operation % DIOMP_REQUEST_REPLY == DIOMP_REQUEST_PUT_SIGNAL_INLINE;
    std::uint64_t const nbytes = is_inline ? what.detail & 0xff : what.field[4];
    const void *const local = is_inline ? &what.field[3] : pointer(what.field[3]);
    int const signal_device = memory_of(what.field[1], by);
    DIOMP_TRY(check_size(is_inline ? nbytes : 0, DIOMP_INLINE_SIGNAL_BYTES));
    // A put and an update take different ways: those of one thread to a signal keep their order.
    bool const adds_to_gpu = signal_device != -1 && (what.detail & DIOMP_SIGNAL_ADDS_) != 0;
    bool const after_puts = (what.detail & DIOMP_SIGNAL_LATER_) != 0;
    if (signal_device == -1 && is_inline && !after_puts && memory_of(what.field[0], by) == -1) {
        auto sent = transfers_.signals().put(
            to, pointer(what.field[0]), local, nbytes,
            static_cast<std::uint64_t *>(pointer(what.field[1])), what.field[2],
            (what.detail & DIOMP_SIGNAL_ADDS_) != 0 ? OMPX_SIGNAL_ADD : OMPX_SIGNAL_SET);
        DIOMP_TRY(sent);
        return {};
    }
    if (nbytes > 0) {
        DIOMP_TRY(put(to, what.field[0], local, is_inline ? -1 : by.device, nbytes, by));
    }
    if (nbytes > 0 || after_puts || adds_to_gpu) {
        DIOMP_TRY(transfers_.flush(to));
    }
    return signal(to, what, by);
}

status request_executor::signal(world_rank to, const diomp_request &what, const device &by) {
    bool const adds = (what.detail & DIOMP_SIGNAL_ADDS_) != 0;
    if (memory_of(what.field[1], by) == -1) {
        auto sent = transfers_.signals().put(
            to, nullptr, nullptr, 0, static_cast<std::uint64_t *>(pointer(what.field[1])),
            what.field[2], adds ? OMPX_SIGNAL_ADD : OMPX_SIGNAL_SET);
        DIOMP_TRY(sent);
        return {};
    }
    if (adds) {
        reply_values unused;
        diomp_request without_reply = what;
        without_reply.operation &= ~static_cast<std::uint32_t>(DIOMP_REQUEST_REPLY);
        return update(to, without_reply, by,
                      {.address = what.field[1],
                       .operand = what.field[2],
                       .type = OMPX_UINT64,
                       .op = OMPX_SUM},
                      unused);
    }
    DIOMP_TRY(updates_->wait());
    return put(to, what.field[1], &what.field[2], -1, sizeof(what.field[2]), by);
}

status request_executor::fetch(world_rank at, const diomp_request &what, const device &by,
                               reply_values &reply) {
    auto const type = static_cast<ompx_type_t>(what.detail & 0xff);
    auto const op = static_cast<ompx_op_t>(what.detail >> 8);
    if (memory_of(what.field[0], by) != -1) {
        return update(at, what, by,
                      {.address = what.field[0], .operand = what.field[1], .type = type, .op = op},
                      reply);
    }
    bool const has_result = (what.operation & DIOMP_REQUEST_REPLY) != 0;
    return transfers_.atomics().fetch(at, pointer(what.field[0]), &what.field[1],
                                      has_result ? reply.words.data() : nullptr, type, op);
}

status request_executor::compare_swap(world_rank at, const diomp_request &what, const device &by,
                                      reply_values &reply) {
    auto const type = static_cast<ompx_type_t>(what.detail & 0xff);
    if (memory_of(what.field[0], by) != -1) {
        return update(at, what, by,
                      {.address = what.field[0],
                       .operand = what.field[1],
                       .desired = what.field[2],
                       .type = type,
                       .op = OMPX_REPLACE,
                       .what = diomp::device::word_update::kind::compare_swap},
                      reply);
    }
    return transfers_.atomics().compare_swap(at, pointer(what.field[0]), &what.field[1],
                                             &what.field[2], reply.words.data(), type);
}

status request_executor::update(world_rank at, const diomp_request &what, const device &by,
                                const diomp::device::word_update &how, reply_values &reply) {
    using diomp::device::word_update;
    auto size = rma::atomics::check(how.type, how.op);
    DIOMP_TRY(size);
    void *const address = pointer(how.address);
    auto located = mover_.locate(at, {address, by.device, "target"}, size.value());
    DIOMP_TRY(located);
    remote_side const &there = located.value();
    bool const has_result = (what.operation & DIOMP_REQUEST_REPLY) != 0;
    if (there.is_on_service()) {
        return error(OMPX_ERR_UNSUPPORTED, "an atomic operation on a remote device by a GPU",
                     "place the word in global host memory");
    }
    if (there.is_host()) { // a host device: the atomics of processors find it
        void *const result = has_result ? reply.words.data() : nullptr;
        return how.what == word_update::kind::compare_swap
                   ? transfers_.atomics().compare_swap(at, address, &how.operand, &how.desired,
                                                       result, how.type)
                   : transfers_.atomics().fetch(at, address, &how.operand, result, how.type,
                                                how.op);
    }
    remote_word word{at, 0, how};
    if (!there.device_memory) {
        word.update.address = reinterpret_cast<std::uintptr_t>(there.location.direct);
        auto old = updates_->apply(*there.on, word.update);
        DIOMP_TRY(old);
        reply.words[0] = old.value();
        return {};
    }
    word.device = there.device_memory->device;
    word.update.address = there.device_memory->address;
    if (!has_result) {
        return start(what, by, word);
    }
    auto old = updates_->fetch(word);
    DIOMP_TRY(old);
    reply.words[0] = old.value();
    return {};
}

status request_executor::start(const diomp_request &what, const device &by,
                               const remote_word &word) {
    return updates_->start(word, [this, what, number = by.device](const error &why) {
        std::lock_guard const guard(late_->mutex);
        auto &first = late_->first[static_cast<std::size_t>(number)];
        if (!first) {
            first = describe_request_error(what, number, why);
        }
    });
}

} // namespace diomp::offload
