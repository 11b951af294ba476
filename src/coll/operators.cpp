// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "coll/internal/operators.h"

#include "base/constant_names.h"
#include "diomp/atomic.h"

#include <fmt/core.h>

#include <cstring>

namespace diomp::coll {

void reducer::apply(void *out, const void *a, const void *b, std::size_t count) const {
    if (combine != nullptr) [[likely]] {
        combine(out, a, b, count);
        return;
    }
    if (out != a) {
        std::memcpy(out, a, count * element_bytes);
    }
    user(out, b, count, type, context);
}

void reducer::apply_to_second(void *out, void *a, const void *b, std::size_t count) const {
    if (combine != nullptr) {
        combine(out, a, b, count);
        return;
    }
    user(a, b, count, type, context);
    std::memcpy(out, a, count * element_bytes);
}

result<ompx_op_t> user_operators::create(ompx_op_function_t function, void *context,
                                         bool commutative) {
    if (function == nullptr) {
        return error(OMPX_ERR_ARG, "the operator's function is a null pointer",
                     "pass the function that combines two vectors");
    }
    std::lock_guard const guard(mutex_);
    std::size_t index = 0;
    while (index < entries_.size() && entries_[index].function != nullptr) {
        ++index;
    }
    if (index == entries_.size()) {
        entries_.emplace_back();
    }
    entries_[index] = {function, context, commutative};
    return first_handle + static_cast<ompx_op_t>(2 * index) + (commutative ? 1 : 0);
}

std::optional<std::size_t> user_operators::find(ompx_op_t op) const {
    auto const index = static_cast<std::size_t>(op - first_handle) / 2;
    bool const is_one = is_user_defined(op) && index < entries_.size() &&
                        entries_[index].function != nullptr &&
                        entries_[index].commutative == is_commutative(op);
    return is_one ? std::optional(index) : std::nullopt;
}

status user_operators::free(ompx_op_t op) {
    std::lock_guard const guard(mutex_);
    auto const index = find(op);
    if (!index) {
        return error(OMPX_ERR_ARG, fmt::format("{} is not a user-defined operator", op),
                     "free each operator that ompx_op_create returned once");
    }
    entries_[*index] = {};
    return {};
}

result<reducer> user_operators::resolve(ompx_type_t type, ompx_op_t op) const {
    reducer made;
    DIOMP_TRY(resolve(type, op, made));
    return made;
}

status user_operators::resolve(ompx_type_t type, ompx_op_t op, reducer &made) const {
    made = {};
    made.type = type;
    made.element_bytes = ompx_type_size(type);
    if (made.element_bytes == 0) {
        return error(OMPX_ERR_ARG, type_name(type),
                     "use one of OMPX_INT8 .. OMPX_DOUBLE_INT64, or OMPX_TYPE_OF_SIZE with a "
                     "user-defined operator");
    }
    if (is_user_defined(op)) {
        std::lock_guard const guard(mutex_);
        auto const index = find(op);
        if (!index) {
            return error(OMPX_ERR_ARG, fmt::format("{} is not an operator", op),
                         "it was never created, or has been freed");
        }
        made.user = entries_[*index].function;
        made.context = entries_[*index].context;
        made.commutative = entries_[*index].commutative;
        return {};
    }
    if ((op < OMPX_SUM || op > OMPX_LOR) && (op < OMPX_AVG || op > OMPX_MAXLOC)) {
        bool const atomic_only = op == OMPX_REPLACE || op == OMPX_NO_OP;
        return error(OMPX_ERR_ARG,
                     atomic_only ? fmt::format("{} is for atomics only", operator_name(op))
                                 : fmt::format("unknown operator {}", op),
                     "use one of OMPX_SUM .. OMPX_LOR, OMPX_AVG .. OMPX_MAXLOC, or one that "
                     "ompx_op_create made");
    }
    made.combine = find_kernel(type, op == OMPX_AVG ? OMPX_SUM : op);
    made.average = op == OMPX_AVG ? find_average(type) : nullptr;
    if (made.combine == nullptr) {
        return error(
            OMPX_ERR_ARG,
            fmt::format("{} has no meaning for {}", operator_name(op), type_name(type)),
            "bitwise operators need integers; OMPX_BOOL has OMPX_LAND, OMPX_LOR and OMPX_BXOR; "
            "minimum and maximum need an order; pairs need "
            "OMPX_MINLOC or OMPX_MAXLOC, and these pairs; a type of a size needs a user-defined "
            "operator");
    }
    return {};
}

} // namespace diomp::coll
