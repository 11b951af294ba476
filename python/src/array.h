// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// NumPy arrays as arguments: their checks, types, and blocks of global memory.
#pragma once

#include "library.h"
#include "numpy_api.h"

#include <cstddef>
#include <string>

namespace diomp::python {

/// An allocation of global memory: the base object of its array and of all views of it. The memory
/// outlives the object, since only a collective call may free it.
struct block {
    void *address = nullptr;
    std::size_t nbytes = 0;
    ompx_mem_kind_t kind = OMPX_MEM_NONE; ///< none: memory of another package
    int device = -1;                      ///< OpenMP's number; -1: the host
    bool is_freed = false;

    /// Freed blocks that arrays may still refer to. While there are none, every array is live.
    /// Guarded by the GIL.
    static inline int num_freed = 0;
};
/// The block that an array lies in, nullptr if its memory is not from this module.
[[nodiscard]] block *block_of(PyArrayObject *array);

/// A new array of a type and a shape at an address, whose memory belongs to `base`.
[[nodiscard]] nb::object array_at(void *address, PyArray_Descr *descr, const PyArray_Dims &shape,
                                  const npy_intp *strides, int flags, const nb::object &base);

/// Name of the function and of one of its arguments, for messages.
struct argument {
    const char *function;
    const char *name;
};

/// str(value).
[[nodiscard]] std::string text_of(const nb::object &value);
/// Text such as "dst=float64(3, 4)".
[[nodiscard]] std::string describe(const argument &given, nb::handle value);
[[noreturn]] void fail(const argument &given, nb::handle value, int status, const std::string &what,
                       const std::string &remedy);

/// The array of an argument; throws for values of other types, freed memory, and types that hold
/// references (object).
[[nodiscard]] PyArrayObject *to_array(const argument &given, nb::handle value);
/// A new array of the type, with the values of a number or list. Throws if an integer would have
/// another value there.
[[nodiscard]] nb::object to_values(const argument &given, nb::handle value, PyArray_Descr *type);
/// Throws if `converted`, the value as an element of the type, is another number.
void check_conversion(const argument &given, nb::handle value, nb::handle converted,
                      const PyArray_Descr *type);
/// Checks that the array is writable.
[[nodiscard]] PyArrayObject *to_writable(const argument &given, nb::handle value);
/// Checks that the elements are contiguous, in C's or Fortran's order.
[[nodiscard]] PyArrayObject *to_contiguous(const argument &given, nb::handle value);
/// Throws if the elements are not in C's order, in which blocks of members are consecutive.
void check_c_order(const argument &given, PyArrayObject *array);
[[nodiscard]] PyArrayObject *to_contiguous_writable(const argument &given, nb::handle value);
/// The address of an array of one element of the given C type.
[[nodiscard]] void *to_element(const argument &given, nb::handle value, ompx_type_t type);

[[nodiscard]] inline bool is_array(nb::handle value) { return PyArray_Check(value.ptr()); }
[[nodiscard]] inline std::size_t count_of(PyArrayObject *array) {
    return static_cast<std::size_t>(PyArray_SIZE(array));
}
[[nodiscard]] inline std::size_t bytes_of(PyArrayObject *array) {
    return count_of(array) * static_cast<std::size_t>(PyArray_ITEMSIZE(array));
}
[[nodiscard]] inline bool is_contiguous(PyArrayObject *array) {
    return (PyArray_FLAGS(array) & (NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS)) != 0;
}
[[nodiscard]] inline bool is_in_c_order(PyArrayObject *array) {
    return (PyArray_FLAGS(array) & NPY_ARRAY_C_CONTIGUOUS) != 0;
}
/// Whether elements at equal positions in the memory of two contiguous arrays have equal indices;
/// of different shapes, indices after reshape().
[[nodiscard]] inline bool have_same_order(PyArrayObject *a, PyArrayObject *b) {
    return (is_in_c_order(a) && is_in_c_order(b)) ||
           (PyArray_SAMESHAPE(a, b) &&
            (PyArray_FLAGS(a) & PyArray_FLAGS(b) & NPY_ARRAY_F_CONTIGUOUS) != 0);
}
/// Whether both arrays have the same type of elements.
[[nodiscard]] inline bool have_same_type(PyArrayObject *a, PyArrayObject *b) {
    return PyArray_DESCR(a) == PyArray_DESCR(b) ||
           PyArray_EquivTypes(PyArray_DESCR(a), PyArray_DESCR(b)) != 0;
}

/// C's type of the elements, 0 if there is none.
[[nodiscard]] ompx_type_t type_of(PyArrayObject *array);
/// NumPy's type for a type of C, a null object if NumPy has none.
[[nodiscard]] nb::object dtype_of(ompx_type_t type);

} // namespace diomp::python
