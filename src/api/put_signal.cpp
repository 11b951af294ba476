// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Puts of bytes and boxes that end with the update of a signal.
#include "api/internal/put_signal.h"

#include "api/internal/addressable.h"
#include "api/internal/contexts.h"
#include "api/internal/rect.h"
#include "api/internal/state.h"
#include "diomp/nonblocking.h"
#include "diomp/transfer.h"
#include "rma/rma.h"

using namespace diomp;

status api::check_signal(const rma::signal_update &change) {
    DIOMP_TRY(check_pointer(change.signal, "signal"));
    if (change.op != OMPX_SIGNAL_SET && change.op != OMPX_SIGNAL_ADD) {
        return error(OMPX_ERR_ARG, "unknown signal operation",
                     "pass OMPX_SIGNAL_SET or OMPX_SIGNAL_ADD");
    }
    return {};
}

namespace {

using update = rma::signal_update;

std::string describe(int rank, const void *dst, const void *src, std::size_t nbytes,
                     const update &change) {
    return fmt::format("rank={}, dst={}, src={}, nbytes={}, signal={}, value={}, op={}", rank, dst,
                       src, nbytes, fmt::ptr(change.signal), change.value,
                       static_cast<int>(change.op));
}

std::string describe_box(int rank, const void *dst, const void *src,
                         const api::rect_arguments &given, const update &change) {
    return fmt::format("rank={}, dst={}, src={}, element_size={}, num_dims={}, ..., signal={}, "
                       "value={}, op={}",
                       rank, dst, src, given.element_size, given.num_dims, fmt::ptr(change.signal),
                       change.value, static_cast<int>(change.op));
}

status check_put(runtime::runtime &running, int rank, const void *dst, const void *src,
                 std::size_t nbytes, const update &change) {
    DIOMP_TRY(api::check_transfer(running, rank, dst, src, nbytes));
    api::check_put_addressable(running, dst, src, nbytes);
    return api::check_signal(change);
}

/// Runs move(signals) -> result<path> in the frame of a public function.
template <typename Move>
int put_bytes(const char *function, const void *site, int rank, void *dst, const void *src,
              std::size_t nbytes, const update &change, Move &&move) {
    return api::call(
        function, site, [&] { return describe(rank, dst, src, nbytes, change); },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            DIOMP_TRY(check_put(running, rank, dst, src, nbytes, change));
            auto moved = move(running.transfers().signals());
            DIOMP_TRY(moved);
            stats = {rma::name(moved.value()), nbytes + sizeof(*change.signal), rank};
            return {};
        });
}

/// Runs move(signals, walk) -> result<path> for a box.
template <typename Move>
int put_box(const char *function, const void *site, int rank, void *dst, const void *src,
            const api::rect_arguments &given, const update &change, Move &&move) {
    return api::call(
        function, site, [&] { return describe_box(rank, dst, src, given, change); },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            DIOMP_TRY(api::check_signal(change));
            auto shape = api::make_box(given);
            DIOMP_TRY(shape);
            DIOMP_TRY(api::check_box_transfer(running, rank, dst, src, shape.value()));
            auto walk = rma::box_walk::make(shape.value());
            DIOMP_TRY(walk);
            auto moved = move(running.transfers().signals(), walk.value());
            DIOMP_TRY(moved);
            stats = {rma::name(moved.value()),
                     api::box_bytes(shape.value()) + sizeof(*change.signal), rank};
            return {};
        });
}

} // namespace

extern "C" {

int ompx_put_signal(int rank, void *dst, const void *src, size_t nbytes, uint64_t *signal,
                    uint64_t value, ompx_signal_op_t op) noexcept {
    return put_bytes("ompx_put_signal", DIOMP_SITE, rank, dst, src, nbytes, {signal, value, op},
                     [&](rma::signals &signals) {
                         return signals.put(world_rank{rank}, dst, src, nbytes, signal, value, op);
                     });
}

int ompx_put_signal_nb(int rank, void *dst, const void *src, size_t nbytes, uint64_t *signal,
                       uint64_t value, ompx_signal_op_t op, ompx_event_t *event) noexcept {
    update const change{signal, value, op};
    return put_bytes("ompx_put_signal_nb", DIOMP_SITE, rank, dst, src, nbytes, change,
                     [&](rma::signals &signals) {
                         return signals.start_put(world_rank{rank}, dst, src, nbytes, change,
                                                  event);
                     });
}

int ompx_context_put_signal_nb(ompx_context_t context, int rank, void *dst, const void *src,
                               size_t nbytes, uint64_t *signal, uint64_t value,
                               ompx_signal_op_t op) noexcept {
    update const change{signal, value, op};
    return api::call(
        "ompx_context_put_signal_nb", DIOMP_SITE,
        [&] {
            return fmt::format("context={}, {}", fmt::ptr(context),
                               describe(rank, dst, src, nbytes, change));
        },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            DIOMP_TRY(check_put(running, rank, dst, src, nbytes, change));
            return api::start_in(running, context, [&](ompx_event_t *event) -> status {
                auto moved = running.transfers().signals().start_put(world_rank{rank}, dst, src,
                                                                     nbytes, change, event);
                DIOMP_TRY(moved);
                stats = {rma::name(moved.value()), nbytes + sizeof(*signal), rank};
                return {};
            });
        });
}

int ompx_put_rect_signal(int rank, void *dst, const void *src, size_t element_size, int num_dims,
                         const size_t *volume, const size_t *dst_offsets, const size_t *src_offsets,
                         const size_t *dst_dimensions, const size_t *src_dimensions,
                         uint64_t *signal, uint64_t value, ompx_signal_op_t op) noexcept {
    update const change{signal, value, op};
    return put_box(
        "ompx_put_rect_signal", DIOMP_SITE, rank, dst, src,
        {element_size, num_dims, volume, dst_offsets, src_offsets, dst_dimensions, src_dimensions},
        change, [&](rma::signals &signals, const rma::box_walk &walk) {
            return signals.put_box(world_rank{rank}, dst, src, walk, change);
        });
}

int ompx_put_rect_signal_nb(int rank, void *dst, const void *src, size_t element_size, int num_dims,
                            const size_t *volume, const size_t *dst_offsets,
                            const size_t *src_offsets, const size_t *dst_dimensions,
                            const size_t *src_dimensions, uint64_t *signal, uint64_t value,
                            ompx_signal_op_t op, ompx_event_t *event) noexcept {
    update const change{signal, value, op};
    return put_box(
        "ompx_put_rect_signal_nb", DIOMP_SITE, rank, dst, src,
        {element_size, num_dims, volume, dst_offsets, src_offsets, dst_dimensions, src_dimensions},
        change, [&](rma::signals &signals, const rma::box_walk &walk) {
            return signals.start_box(world_rank{rank}, dst, src, walk, change, event);
        });
}

} // extern "C"
