// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/internal/request_executor.h"

#include "diomp/types.h"
#include "offload/mover.h"
#include "rma/atomics.h"
#include "rma/rma.h"
#include "rma/signals.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

namespace diomp::offload {
namespace {

void *pointer(std::uint64_t address) {
    return reinterpret_cast<void *>(address); // NOLINT(performance-no-int-to-ptr)
}

/// A processor cannot update a word of a GPU so that it is atomic for that GPU.
status check_updatable(int device, const char *what) {
    if (device == -1) {
        return {};
    }
    return error(
        OMPX_ERR_UNSUPPORTED,
        fmt::format("{} in the memory of a GPU that the calling one cannot store", what),
        "place the word in global host memory, or give each sender a signal of its own and "
        "use OMPX_SIGNAL_SET");
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

status request_executor::prepare(const accelerator &on) { return mover_.prepare_for_regions(on); }

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
                 .rank = operation == DIOMP_REQUEST_FENCE ? -1 : what.rank,
                 .begin = begin,
                 .end = std::chrono::steady_clock::now()});
    return done;
}

status request_executor::run(const diomp_request &what, const requesting_device &by,
                             reply_values &reply) {
    if (what.operation % DIOMP_REQUEST_REPLY == DIOMP_REQUEST_FENCE) {
        return transfers_.fence();
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
    if ((what.detail & DIOMP_SIGNAL_ADDS_) != 0) {
        DIOMP_TRY(check_updatable(signal_device, "OMPX_SIGNAL_ADD to a signal"));
    }
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
    if (nbytes > 0 || after_puts) {
        DIOMP_TRY(transfers_.flush(to));
    }
    return signal(to, what, by);
}

status request_executor::signal(world_rank to, const diomp_request &what, const device &by) {
    if (memory_of(what.field[1], by) != -1) {
        return put(to, what.field[1], &what.field[2], -1, sizeof(what.field[2]), by);
    }
    auto sent = transfers_.signals().put(
        to, nullptr, nullptr, 0, static_cast<std::uint64_t *>(pointer(what.field[1])),
        what.field[2], (what.detail & DIOMP_SIGNAL_ADDS_) != 0 ? OMPX_SIGNAL_ADD : OMPX_SIGNAL_SET);
    DIOMP_TRY(sent);
    return {};
}

status request_executor::fetch(world_rank at, const diomp_request &what, const device &by,
                               reply_values &reply) {
    DIOMP_TRY(check_updatable(memory_of(what.field[0], by), "an atomic operation"));
    bool const has_result = (what.operation & DIOMP_REQUEST_REPLY) != 0;
    return transfers_.atomics().fetch(
        at, pointer(what.field[0]), &what.field[1], has_result ? reply.words.data() : nullptr,
        static_cast<ompx_type_t>(what.detail & 0xff), static_cast<ompx_op_t>(what.detail >> 8));
}

status request_executor::compare_swap(world_rank at, const diomp_request &what, const device &by,
                                      reply_values &reply) {
    DIOMP_TRY(check_updatable(memory_of(what.field[0], by), "an atomic operation"));
    return transfers_.atomics().compare_swap(at, pointer(what.field[0]), &what.field[1],
                                             &what.field[2], reply.words.data(),
                                             static_cast<ompx_type_t>(what.detail & 0xff));
}

} // namespace diomp::offload
