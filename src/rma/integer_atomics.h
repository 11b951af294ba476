// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Atomic operators on integers that have an instruction of the processor, for the calling core.
#pragma once

#include "diomp/types.h"

#include <atomic>
#include <concepts>

namespace diomp::rma {

[[nodiscard]] constexpr bool has_instruction(ompx_op_t op) {
    return op == OMPX_SUM || op == OMPX_REPLACE || op == OMPX_NO_OP || op == OMPX_BAND ||
           op == OMPX_BOR || op == OMPX_BXOR;
}

/// Returns the old value. `target` is aligned; has_instruction(op).
template <std::unsigned_integral T>
T fetch_by_instruction(T *target, T operand, ompx_op_t op) {
    std::atomic_ref<T> const cell(*target);
    switch (op) {
    case OMPX_SUM: // signed overflow wraps
        return cell.fetch_add(operand);
    case OMPX_REPLACE:
        return cell.exchange(operand);
    case OMPX_BAND:
        return cell.fetch_and(operand);
    case OMPX_BOR:
        return cell.fetch_or(operand);
    case OMPX_BXOR:
        return cell.fetch_xor(operand);
    default:
        return cell.load();
    }
}

} // namespace diomp::rma
