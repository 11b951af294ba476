// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operators of reductions: C's numbers, and functions of the program.
#pragma once

#include "library.h"
#include "numpy_api.h"

namespace diomp::python {

/// A reduction operator that calls a Python function on arrays: result = function(left, right).
class user_operator {
public:
    user_operator(nb::object function, nb::handle dtype, bool commutative);
    user_operator(const user_operator &) = delete;
    user_operator &operator=(const user_operator &) = delete;
    ~user_operator();

    [[nodiscard]] ompx_op_t handle() const { return handle_; }
    /// The C type of a reduction of `array` by this operator; throws if its dtype is another one.
    [[nodiscard]] ompx_type_t type_for(const char *function, PyArrayObject *array) const;
    /// Throws the first exception that the function has raised on this rank.
    void throw_pending();
    /// Instead, if the program has dropped the event.
    void forget_pending() { raised_.reset(); }

    /// From now on functions are not called, and none is under way. Call before the interpreter
    /// ends; blocks without the GIL.
    static void stop();

private:
    static void apply(void *inout, const void *in, std::size_t count, ompx_type_t type,
                      void *context);
    void combine(void *inout, const void *in, std::size_t count, ompx_type_t type);

    ompx_op_t handle_ = 0;
    nb::object function_;
    nb::object dtype_; ///< none: that of the arrays
    nb::object raised_;
};

/// The operator and element type of a reduction call.
struct reduction {
    ompx_op_t op;
    ompx_type_t type;
};
[[nodiscard]] reduction reduction_of(const char *function, nb::handle op, PyArrayObject *array);
/// Whether a user_operator is among the objects of a tuple.
[[nodiscard]] bool has_user_operator(nb::handle objects);
/// user_operator::forget_pending of the objects of a tuple.
void forget_pending(nb::handle objects);
/// Throws the pending exception of a user_operator among the objects of a tuple, if there is one.
void throw_pending(nb::handle objects);

} // namespace diomp::python
