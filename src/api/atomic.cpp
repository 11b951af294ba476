// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Remote atomics.
#include "diomp/atomic.h"

#include "api/internal/contexts.h"
#include "diomp/nonblocking.h"
#include "rma/atomics.h"
#include "rma/rma.h"
#include "sync/call_signature.h"

using namespace diomp;

namespace {

std::string describe_atomic(int rank, const void *target, ompx_type_t type) {
    return fmt::format("rank={}, target={}, type={}", rank, target, sync::type_name(type));
}

std::string describe_fetch(int rank, const void *target, ompx_type_t type, ompx_op_t op) {
    return fmt::format("{}, op={}", describe_atomic(rank, target, type), sync::operator_name(op));
}

/// The arguments of both forms of a fetching atomic.
status check_fetch(runtime::runtime &running, int rank, const void *target, const void *operand,
                   ompx_op_t op) {
    DIOMP_TRY(api::check_rank(running, rank));
    DIOMP_TRY(api::check_pointer(target, "target"));
    return op == OMPX_NO_OP ? status() : api::check_pointer(operand, "operand");
}

/// The arguments of both forms of compare and swap.
status check_compare_swap(runtime::runtime &running, int rank, const void *target,
                          const void *expected, const void *desired) {
    DIOMP_TRY(api::check_rank(running, rank));
    DIOMP_TRY(api::check_pointer(target, "target"));
    DIOMP_TRY(api::check_pointer(expected, "expected"));
    return api::check_pointer(desired, "desired");
}

} // namespace

extern "C" {

int ompx_atomic_fetch(int rank, void *target, const void *operand, void *result, ompx_type_t type,
                      ompx_op_t op) noexcept {
    return api::call(
        "ompx_atomic_fetch", DIOMP_SITE, [&] { return describe_fetch(rank, target, type, op); },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            DIOMP_TRY(check_fetch(running, rank, target, operand, op));
            stats = {"", ompx_type_size(type), rank};
            return running.transfers().atomics().fetch(world_rank{rank}, target, operand, result,
                                                       type, op);
        });
}

int ompx_atomic_fetch_nb(int rank, void *target, const void *operand, void *result,
                         ompx_type_t type, ompx_op_t op, ompx_event_t *event) noexcept {
    return api::call(
        "ompx_atomic_fetch_nb", DIOMP_SITE, [&] { return describe_fetch(rank, target, type, op); },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            DIOMP_TRY(check_fetch(running, rank, target, operand, op));
            stats = {"", ompx_type_size(type), rank};
            return running.transfers().atomics().start_fetch(world_rank{rank}, target, operand,
                                                             result, type, op, event);
        });
}

int ompx_context_atomic_fetch_nb(ompx_context_t context, int rank, void *target,
                                 const void *operand, void *result, ompx_type_t type,
                                 ompx_op_t op) noexcept {
    return api::call(
        "ompx_context_atomic_fetch_nb", DIOMP_SITE,
        [&] {
            return fmt::format("context={}, {}", fmt::ptr(context),
                               describe_fetch(rank, target, type, op));
        },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            DIOMP_TRY(check_fetch(running, rank, target, operand, op));
            stats = {"", ompx_type_size(type), rank};
            return api::start_in(running, context, [&](ompx_event_t *event) {
                return running.transfers().atomics().start_fetch(world_rank{rank}, target, operand,
                                                                 result, type, op, event);
            });
        });
}

int ompx_atomic_compare_swap(int rank, void *target, const void *expected, const void *desired,
                             void *result, ompx_type_t type) noexcept {
    return api::call(
        "ompx_atomic_compare_swap", DIOMP_SITE, [&] { return describe_atomic(rank, target, type); },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            DIOMP_TRY(check_compare_swap(running, rank, target, expected, desired));
            stats = {"", ompx_type_size(type), rank};
            return running.transfers().atomics().compare_swap(world_rank{rank}, target, expected,
                                                              desired, result, type);
        });
}

int ompx_atomic_compare_swap_nb(int rank, void *target, const void *expected, const void *desired,
                                void *result, ompx_type_t type, ompx_event_t *event) noexcept {
    return api::call(
        "ompx_atomic_compare_swap_nb", DIOMP_SITE,
        [&] { return describe_atomic(rank, target, type); },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            DIOMP_TRY(check_compare_swap(running, rank, target, expected, desired));
            stats = {"", ompx_type_size(type), rank};
            return running.transfers().atomics().start_compare_swap(
                world_rank{rank}, target, expected, desired, result, type, event);
        });
}

int ompx_context_atomic_compare_swap_nb(ompx_context_t context, int rank, void *target,
                                        const void *expected, const void *desired, void *result,
                                        ompx_type_t type) noexcept {
    return api::call(
        "ompx_context_atomic_compare_swap_nb", DIOMP_SITE,
        [&] {
            return fmt::format("context={}, {}", fmt::ptr(context),
                               describe_atomic(rank, target, type));
        },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            DIOMP_TRY(check_compare_swap(running, rank, target, expected, desired));
            stats = {"", ompx_type_size(type), rank};
            return api::start_in(running, context, [&](ompx_event_t *event) {
                return running.transfers().atomics().start_compare_swap(
                    world_rank{rank}, target, expected, desired, result, type, event);
            });
        });
}

} // extern "C"
