// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "operators.h"

#include "array.h"

#include <cstring>

namespace diomp::python {

namespace {

thread_gate g_running; ///< threads in user_operator::apply

} // namespace

user_operator::user_operator(nb::object function, nb::handle dtype, bool commutative)
    : function_(std::move(function)), dtype_(nb::none()) {
    if (PyCallable_Check(function_.ptr()) == 0) {
        throw nb::type_error("diomp.UserOp: function is not callable");
    }
    if (!dtype.is_none()) {
        PyArray_Descr *descr = nullptr;
        if (PyArray_DescrConverter(dtype.ptr(), &descr) == 0) {
            throw nb::python_error();
        }
        dtype_ = nb::steal(reinterpret_cast<PyObject *>(descr));
    }
    check(ompx_op_create(&handle_, apply, this, commutative ? 1 : 0));
}

user_operator::~user_operator() {
    if (handle_ != 0 && ompx_is_initialized() == 1) {
        ompx_op_free(&handle_);
    }
}

ompx_type_t user_operator::type_for(const char *function, PyArrayObject *array) const {
    nb::handle const value(reinterpret_cast<PyObject *>(array));
    auto *const descr = reinterpret_cast<PyArray_Descr *>(dtype_.ptr());
    if (!dtype_.is_none()) {
        if (PyArray_EquivTypes(descr, PyArray_DESCR(array)) == 0) {
            fail({function, "src"}, value, OMPX_ERR_ARG,
                 "has another dtype than its operator, " + text_of(dtype_),
                 "pass arrays of the operator's dtype");
        }
        return OMPX_TYPE_OF_SIZE(PyArray_ITEMSIZE(array));
    }
    ompx_type_t const type = type_of(array);
    if (type == 0 || type == OMPX_BFLOAT16) {
        fail({function, "src"}, value, OMPX_ERR_ARG, "has a dtype that is not one of C's types",
             "create the operator with this dtype: diomp.UserOp(function, dtype)");
    }
    return type;
}

void user_operator::apply(void *inout, const void *in, std::size_t count, ompx_type_t type,
                          void *context) {
    if (!g_running.enter()) {
        return;
    }
    struct running {
        ~running() { g_running.leave(); }
    } const counted;
    nb::gil_scoped_acquire const acquired;
    auto &self = *static_cast<user_operator *>(context);
    try {
        self.combine(inout, in, count, type);
    } catch (nb::python_error &error) {
        if (!self.raised_.is_valid()) {
            self.raised_ = nb::borrow(error.value());
        }
    }
}

// The runtime's buffers need not be aligned, and they end with the call; the function gets copies.
void user_operator::combine(void *inout, const void *in, std::size_t count, ompx_type_t type) {
    nb::object const dtype = dtype_.is_none() ? dtype_of(type) : dtype_;
    auto const copy_of = [&](const void *from) {
        auto *const descr = reinterpret_cast<PyArray_Descr *>(nb::object(dtype).release().ptr());
        auto length = static_cast<npy_intp>(count);
        nb::object made = nb::steal(
            PyArray_NewFromDescr(&PyArray_Type, descr, 1, &length, nullptr, nullptr, 0, nullptr));
        if (!made.is_valid()) {
            throw nb::python_error();
        }
        auto *const array = reinterpret_cast<PyArrayObject *>(made.ptr());
        std::memcpy(PyArray_DATA(array), from, bytes_of(array));
        return made;
    };
    nb::object const left = copy_of(inout);
    nb::object const result = function_(left, copy_of(in));
    if (result.is_none()) {
        PyErr_SetString(PyExc_TypeError, "the function of a diomp.UserOp has returned None");
        throw nb::python_error();
    }
    auto *const into = reinterpret_cast<PyArrayObject *>(left.ptr());
    if (PyArray_CopyObject(into, result.ptr()) < 0) {
        throw nb::python_error();
    }
    std::memcpy(inout, PyArray_DATA(into), bytes_of(into));
}

void user_operator::throw_pending() {
    if (raised_.is_valid()) {
        nb::object const raised = std::move(raised_);
        PyErr_SetObject(reinterpret_cast<PyObject *>(Py_TYPE(raised.ptr())), raised.ptr());
        throw nb::python_error();
    }
}

reduction reduction_of(const char *function, nb::handle op, PyArrayObject *array) {
    if (nb::isinstance<user_operator>(op)) {
        auto const *const own = nb::inst_ptr<user_operator>(op);
        return {own->handle(), own->type_for(function, array)};
    }
    ompx_type_t const type = type_of(array);
    if (type == 0) {
        fail({function, "src"}, nb::handle(reinterpret_cast<PyObject *>(array)), OMPX_ERR_ARG,
             "has a dtype that the predefined operators do not support",
             "use booleans, integers, floats or complex numbers in native byte order, or a "
             "diomp.UserOp with this dtype");
    }
    ompx_op_t predefined = 0;
    if (!nb::try_cast(op, predefined)) {
        fail({function, "op"}, op, OMPX_ERR_ARG, "is no operator",
             "pass one such as diomp.SUM, or a diomp.UserOp");
    }
    return {predefined, type};
}

void user_operator::stop() { g_running.close(); } // ends when the functions return

namespace {

template <typename Use>
void for_each_operator(nb::handle objects, Use use) {
    if (!objects.is_valid() || !nb::isinstance<nb::tuple>(objects)) {
        return;
    }
    for (nb::handle const each : nb::borrow<nb::tuple>(objects)) {
        if (nb::isinstance<user_operator>(each)) {
            use(*nb::inst_ptr<user_operator>(each));
        }
    }
}

} // namespace

bool has_user_operator(nb::handle objects) {
    bool found = false;
    for_each_operator(objects, [&](const user_operator & /*each*/) { found = true; });
    return found;
}

void forget_pending(nb::handle objects) {
    for_each_operator(objects, [](user_operator &each) { each.forget_pending(); });
}

void throw_pending(nb::handle objects) {
    for_each_operator(objects, [](user_operator &each) { each.throw_pending(); });
}

void bind_operators(nb::module_ &m) {
    nb::class_<user_operator>(
        m, "UserOp",
        "A reduction operator: function(left, right) gets arrays of equally many elements and "
        "returns "
        "their combination, element by element. It must be associative, and must not call diomp. "
        "Operands are combined in rank order; with commutative=True in any order. All members of a "
        "reduction pass equivalent operators. With a dtype, the arrays may have any dtype of fixed "
        "size, such as structures.")
        .def(nb::init<nb::object, nb::handle, bool>(), nb::arg("function"),
             nb::arg("dtype") = nb::none(), nb::arg("commutative") = false,
             nb::sig("def __init__(self, function: "
                     "collections.abc.Callable[[numpy.ndarray, numpy.ndarray], object], dtype: "
                     "object = None, commutative: bool = False) -> None"));
}

} // namespace diomp::python
