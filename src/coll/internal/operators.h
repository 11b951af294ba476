// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Looks up the function that combines two arrays by type and operator.
#pragma once

#include "base/result.h"
#include "diomp/types.h"

#include <cstddef>
#include <mutex>
#include <optional>
#include <vector>

namespace diomp::coll {

/// out[i] = a[i] op b[i] for i < count. out may be a or b; otherwise the arrays must not overlap.
///
/// Minimum and maximum give the same bits in either operand order (base/minimum_maximum.h). Sums
/// and products of floating type do so except for NaNs: of two NaNs, processors return one by
/// operand position. The position depends on the compiled loop, so members that combine the same
/// elements must call the same kernel with the same order and count.
using combine_function = void (*)(void *out, const void *a, const void *b, std::size_t count);

/// values[i] /= num for i < count; integers are rounded toward zero.
using average_function = void (*)(void *values, std::size_t count, std::size_t num);

/// A predefined or user-defined operator for one type.
struct reducer {
    combine_function combine = nullptr; ///< predefined
    ompx_op_function_t user = nullptr;
    void *context = nullptr;
    std::size_t element_bytes = 0;
    /// OMPX_AVG: divides the sum, applied once to the result; else null.
    average_function average = nullptr;
    ompx_type_t type = 0;
    bool commutative = true;

    /// out may be a.
    void apply(void *out, const void *a, const void *b, std::size_t count) const;
    /// out may be b; a may be overwritten.
    void apply_to_second(void *out, void *a, const void *b, std::size_t count) const;
};

/// Instruction set of a kernel; `best`: the best one that the processor supports.
enum class instruction_set { best, baseline };
/// Null if the operator is not defined for the type.
combine_function find_kernel(ompx_type_t type, ompx_op_t op,
                             instruction_set isa = instruction_set::best);
/// OMPX_MINLOC and OMPX_MAXLOC on types of pairs; null for others.
combine_function find_pair_kernel(ompx_type_t type, ompx_op_t op);
/// Null if the type has no sums.
average_function find_average(ompx_type_t type);

/// Thread-safe.
class user_operators {
public:
    static constexpr ompx_op_t first_handle = 0x1000;

    result<ompx_op_t> create(ompx_op_function_t function, void *context, bool commutative);
    status free(ompx_op_t op);
    /// The reducer of a predefined or user-defined operator. OMPX_ERR_ARG if there is none.
    result<reducer> resolve(ompx_type_t type, ompx_op_t op) const;
    /// Writes the reducer into `made`.
    status resolve(ompx_type_t type, ompx_op_t op, reducer &made) const;

    [[nodiscard]] static bool is_user_defined(ompx_op_t op) { return op >= first_handle; }
    /// Whether a user-defined operator is commutative. Its handle says so: no lock is needed.
    [[nodiscard]] static bool is_commutative(ompx_op_t op) { return (op & 1) != 0; }

private:
    struct entry {
        ompx_op_function_t function = nullptr; ///< null: free
        void *context = nullptr;
        bool commutative = false;
    };
    /// The index of an operator's entry. Call with the mutex.
    [[nodiscard]] std::optional<std::size_t> find(ompx_op_t op) const;

    mutable std::mutex mutex_; ///< leaf lock
    std::vector<entry> entries_;
};

} // namespace diomp::coll
