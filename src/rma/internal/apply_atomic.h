// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Atomic operations on mapped memory, for the caller's core or the target's message handler.
#pragma once

#include "base/result.h"
#include "diomp/types.h"

namespace diomp::rma {

/// Size of the operand in bytes, or an error that names the unsupported type or operator.
result<std::size_t> check_atomic(ompx_type_t type, ompx_op_t op);

/// *result = *target; *target = *target op *operand; sequentially consistent. Requires checked
/// arguments and an aligned target; result may be null.
void apply_atomic(void *target, const void *operand, void *result, ompx_type_t type, ompx_op_t op);
void apply_compare_swap(void *target, const void *expected, const void *desired, void *result,
                        ompx_type_t type);

} // namespace diomp::rma
