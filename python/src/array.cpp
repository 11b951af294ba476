// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "array.h"

namespace diomp::python {

namespace {

/// The element type that NumPy has under a number, for the types of collectives and atomics.
ompx_type_t type_of_number(int number) {
    switch (number) {
    case NPY_BOOL:
        return OMPX_BOOL;
    case NPY_BYTE:
        return OMPX_INT8;
    case NPY_UBYTE:
        return OMPX_UINT8;
    case NPY_SHORT:
        return OMPX_INT16;
    case NPY_USHORT:
        return OMPX_UINT16;
    case NPY_INT:
        return OMPX_INT32;
    case NPY_UINT:
        return OMPX_UINT32;
    case NPY_LONG:
        return sizeof(long) == 8 ? OMPX_INT64 : OMPX_INT32;
    case NPY_ULONG:
        return sizeof(long) == 8 ? OMPX_UINT64 : OMPX_UINT32;
    case NPY_LONGLONG:
        return OMPX_INT64;
    case NPY_ULONGLONG:
        return OMPX_UINT64;
    case NPY_HALF:
        return OMPX_FLOAT16;
    case NPY_FLOAT:
        return OMPX_FLOAT;
    case NPY_DOUBLE:
        return OMPX_DOUBLE;
    case NPY_LONGDOUBLE:
        return OMPX_LONG_DOUBLE;
    case NPY_CFLOAT:
        return OMPX_FLOAT_COMPLEX;
    case NPY_CDOUBLE:
        return OMPX_DOUBLE_COMPLEX;
    default:
        return 0;
    }
}

constexpr int number_of_type[] = {NPY_NOTYPE,  NPY_INT8,   NPY_UINT8,  NPY_INT16,      NPY_UINT16,
                                  NPY_INT32,   NPY_UINT32, NPY_INT64,  NPY_UINT64,     NPY_HALF,
                                  NPY_NOTYPE,  NPY_FLOAT,  NPY_DOUBLE, NPY_LONGDOUBLE, NPY_CFLOAT,
                                  NPY_CDOUBLE, NPY_BOOL};

bool holds_references(PyArrayObject *array) { return PyDataType_REFCHK(PyArray_DESCR(array)) != 0; }

} // namespace

block *block_of(PyArrayObject *array) {
    static auto *const block_type = reinterpret_cast<PyTypeObject *>(nb::type<block>().ptr());
    PyObject *base = PyArray_BASE(array);
    while (base != nullptr && PyArray_Check(base)) {
        base = PyArray_BASE(reinterpret_cast<PyArrayObject *>(base));
    }
    block *found = nullptr;
    if (base != nullptr && PyObject_TypeCheck(base, block_type)) {
        found = nb::inst_ptr<block>(base);
    }
    return found;
}

nb::object array_at(void *address, PyArray_Descr *descr, const PyArray_Dims &shape,
                    const npy_intp *strides, int flags, const nb::object &base) {
    Py_INCREF(descr); // the next call takes a reference
    nb::object array = nb::steal(PyArray_NewFromDescr(&PyArray_Type, descr, shape.len, shape.ptr,
                                                      strides, address, flags, nullptr));
    if (!array.is_valid() || PyArray_SetBaseObject(reinterpret_cast<PyArrayObject *>(array.ptr()),
                                                   nb::object(base).release().ptr()) < 0) {
        throw nb::python_error();
    }
    return array;
}

std::string describe(const argument &given, nb::handle value) {
    std::string text = given.name;
    text += '=';
    if (!is_array(value)) {
        return text + Py_TYPE(value.ptr())->tp_name;
    }
    return text + text_of(value.attr("dtype")) + text_of(value.attr("shape"));
}

std::string text_of(const nb::object &value) {
    nb::object const text = nb::steal(PyObject_Str(value.ptr()));
    char const *const bytes = text.is_valid() ? PyUnicode_AsUTF8(text.ptr()) : nullptr;
    if (bytes == nullptr) {
        throw nb::python_error();
    }
    return bytes;
}

void fail(const argument &given, nb::handle value, int status, const std::string &what,
          const std::string &remedy) {
    fail(given.function, describe(given, value), status, given.name + (' ' + what), remedy);
}

void check_conversion(const argument &given, nb::handle value, nb::handle converted,
                      const PyArray_Descr *type) {
    if (!PyTypeNum_ISINTEGER(type->type_num)) {
        return;
    }
    bool const is_equal =
        is_array(converted)
            ? nb::cast<bool>(nb::module_::import_("numpy").attr("array_equal")(value, converted))
            : value.equal(converted);
    if (!is_equal) {
        fail(given, value, OMPX_ERR_ARG, "has values that the other side's dtype does not hold",
             "convert them, such as by numpy.asarray(values).astype(dtype)");
    }
}

nb::object to_values(const argument &given, nb::handle value, PyArray_Descr *type) {
    Py_INCREF(type); // the next call takes a reference
    auto made = nb::steal(PyArray_FromAny(value.ptr(), type, 0, 0, NPY_ARRAY_CARRAY_RO, nullptr));
    if (!made.is_valid()) {
        throw nb::python_error();
    }
    auto *const array = reinterpret_cast<PyArrayObject *>(made.ptr());
    bool const is_number = PyArray_NDIM(array) == 0;
    check_conversion(given, value,
                     is_number ? nb::steal(PyArray_GETITEM(array, PyArray_BYTES(array))) : made,
                     type);
    return made;
}

PyArrayObject *to_array(const argument &given, nb::handle value) {
    if (!is_array(value)) {
        if (PyArray_IsScalar(value.ptr(), Generic)) {
            fail(given, value, OMPX_ERR_ARG, "is a NumPy scalar, which is a copy of an element",
                 "pass a section of one element, a[i:i+1]");
        }
        fail(given, value, OMPX_ERR_ARG, "is not a NumPy array in host memory",
             "pass a NumPy array; device arrays are operands of put, get and collectives");
    }
    auto *const array = reinterpret_cast<PyArrayObject *>(value.ptr());
    if (holds_references(array)) {
        fail(
            given, value, OMPX_ERR_ARG,
            "has elements that are references to Python objects, which mean nothing to other ranks",
            "use a numerical dtype, or send bytes of pickle");
    }
    block const *const from = block_of(array);
    if (from != nullptr && from->is_freed) {
        fail(given, value, OMPX_ERR_ADDRESS, "lies in memory that has been freed",
             "use an array before diomp.free, or allocate it anew");
    }
    return array;
}

PyArrayObject *to_writable(const argument &given, nb::handle value) {
    PyArrayObject *const array = to_array(given, value);
    if (!PyArray_ISWRITEABLE(array)) {
        fail(given, value, OMPX_ERR_ARG, "is read-only",
             "pass an array whose flag 'writeable' is set");
    }
    return array;
}

PyArrayObject *to_contiguous(const argument &given, nb::handle value) {
    PyArrayObject *const array = to_array(given, value);
    if (!is_contiguous(array)) {
        fail(
            given, value, OMPX_ERR_ARG, "is not contiguous",
            "pass numpy.ascontiguousarray(a) as a source; receive into a contiguous array and copy "
            "from it");
    }
    return array;
}

void check_c_order(const argument &given, PyArrayObject *array) {
    if (!is_in_c_order(array)) {
        fail(given, nb::handle(reinterpret_cast<PyObject *>(array)), OMPX_ERR_ARG,
             "is in Fortran's order, in which blocks of members are not consecutive",
             "pass arrays in C's order, such as numpy.ascontiguousarray(a)");
    }
}

PyArrayObject *to_contiguous_writable(const argument &given, nb::handle value) {
    (void)to_writable(given, value);
    return to_contiguous(given, value);
}

void *to_element(const argument &given, nb::handle value, ompx_type_t type) {
    PyArrayObject *const array = to_array(given, value);
    if (PyArray_SIZE(array) != 1 || type_of(array) != type) {
        fail(given, value, OMPX_ERR_ARG,
             "is not one element of the dtype " + text_of(dtype_of(type)),
             "pass a section of one element, a[i:i+1]");
    }
    return PyArray_DATA(array);
}

ompx_type_t type_of(PyArrayObject *array) {
    if (!PyArray_ISNOTSWAPPED(array)) {
        return 0;
    }
    ompx_type_t const type = type_of_number(PyArray_TYPE(array));
    if (type != 0) {
        return type;
    }
    // NumPy itself has no bfloat16; packages register one under this name.
    nb::object const dtype = nb::borrow(reinterpret_cast<PyObject *>(PyArray_DESCR(array)));
    bool const is_bfloat16 = PyArray_ITEMSIZE(array) == 2 && text_of(dtype) == "bfloat16";
    return is_bfloat16 ? OMPX_BFLOAT16 : 0;
}

nb::object dtype_of(ompx_type_t type) {
    if (type < OMPX_INT8 || type > OMPX_BOOL || number_of_type[type] == NPY_NOTYPE) {
        return {};
    }
    return nb::steal(reinterpret_cast<PyObject *>(PyArray_DescrFromType(number_of_type[type])));
}

} // namespace diomp::python
