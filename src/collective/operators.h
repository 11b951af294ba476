// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From (type, operator) to the function that combines two arrays.
#pragma once

#include "base/result.h"
#include "diomp.h"

#include <cstddef>
#include <mutex>
#include <optional>
#include <vector>

namespace diomp::collective {

/// out[i] = a[i] op b[i] for i < count. out may be a or b; else none overlaps another.
///
/// Minimum and maximum give the same bits whichever operand comes first (base/minimum_maximum.h).
/// Sums and products of floating type do so but for NaNs: of two, processors take one by their
/// place. Which operand stands first there depends on the compiled loop, so members that combine
/// the same elements must call the same kernel with the same order and count.
using combine_function = void (*)(void *out, const void *a, const void *b, std::size_t count);

/// values[i] /= num for i < count; of integers the quotient is cut.
using average_function = void (*)(void *values, std::size_t count, std::size_t num);

/// A predefined operator or a user's, ready to use.
struct reducer {
    combine_function combine = nullptr; ///< predefined
    ompx_op_function_t user = nullptr;
    void *context = nullptr;
    std::size_t element_bytes = 0;
    /// OMPX_AVG: what makes the average of a sum; null: nothing. Once, where the result is.
    average_function average = nullptr;
    ompx_type_t type = 0;
    bool commutative = true;

    /// out may be a.
    void apply(void *out, const void *a, const void *b, std::size_t count) const;
    /// out may be b; a may be overwritten.
    void apply_to_second(void *out, void *a, const void *b, std::size_t count) const;
};

/// What a kernel may be made of; `best`: all that the processor has.
enum class instructions { best, baseline };
/// Null if the operator makes no sense for the type.
combine_function find_kernel(ompx_type_t type, ompx_op_t op,
                             instructions made_of = instructions::best);
/// Null if sums of the type make no sense.
average_function find_average(ompx_type_t type);

/// Any thread.
class user_operators {
public:
    static constexpr ompx_op_t first_handle = 0x1000;

    result<ompx_op_t> create(ompx_op_function_t function, void *context, bool commutative);
    status free(ompx_op_t op);
    /// The reducer of any operator, predefined or user-defined, or why there is none.
    result<reducer> resolve(ompx_type_t type, ompx_op_t op) const;
    /// The same into `made`, all of it.
    status resolve(ompx_type_t type, ompx_op_t op, reducer &made) const;

    [[nodiscard]] static bool is_user_defined(ompx_op_t op) { return op >= first_handle; }

private:
    struct entry {
        ompx_op_function_t function = nullptr; ///< null: free
        void *context = nullptr;
        bool commutative = false;
    };
    mutable std::mutex mutex_; ///< leaf lock
    std::vector<entry> entries_;
};

} // namespace diomp::collective
