// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Atomics on one element at a rank, and waits for a value.
#include "array.h"

#include <cstddef>

namespace diomp::python {

namespace {

/// One value of a C type.
struct alignas(16) element {
    std::byte bytes[32];
};

/// The element of another rank that an atomic changes.
class atomic_target {
public:
    atomic_target(const char *function, nb::handle value)
        : function_(function), array_(to_writable({function, "target"}, value)),
          type_(type_of(array_)) {
        if (PyArray_SIZE(array_) != 1 || type_ == 0) {
            fail({function, "target"}, value, OMPX_ERR_ARG,
                 "is not one element of a type with atomics",
                 "pass a section of one element, a[i:i+1], of 32 or 64 bit integers or floats");
        }
    }

    [[nodiscard]] void *address() const { return PyArray_DATA(array_); }
    [[nodiscard]] ompx_type_t type() const { return type_; }
    /// Conversions between values and C's representation; throw if the value does not fit.
    [[nodiscard]] element from(nb::handle value) const {
        element converted{};
        if (PyArray_SETITEM(array_, reinterpret_cast<char *>(converted.bytes), value.ptr()) < 0) {
            throw nb::python_error();
        }
        check_conversion({function_, "value"}, value, to_python(converted), PyArray_DESCR(array_));
        return converted;
    }
    [[nodiscard]] nb::object to_python(const element &value) const {
        return nb::steal(PyArray_GETITEM(array_, reinterpret_cast<const char *>(value.bytes)));
    }

private:
    const char *function_;
    PyArrayObject *array_;
    ompx_type_t type_;
};

/// Atomics within a node never wait; others run without the GIL.
template <typename Call>
void run_atomic(Call &&call) {
    if (is_single_node()) {
        check(call());
    } else {
        run(call);
    }
}

void update(const char *function, ompx_op_t op, int rank, nb::handle target, nb::handle value) {
    atomic_target const at(function, target);
    element const operand = at.from(value);
    run_atomic([&] {
        return ompx_atomic_fetch(rank, at.address(), operand.bytes, nullptr, at.type(), op);
    });
}

nb::object fetch(const char *function, ompx_op_t op, int rank, nb::handle target,
                 nb::handle value) {
    atomic_target const at(function, target);
    element const operand = value.is_valid() ? at.from(value) : element{};
    element result{};
    run_atomic([&] {
        return ompx_atomic_fetch(rank, at.address(), operand.bytes, result.bytes, at.type(), op);
    });
    return at.to_python(result);
}

nb::object compare_swap(int rank, nb::handle target, nb::handle expected, nb::handle desired) {
    atomic_target const at("diomp.atomic_compare_swap", target);
    element const old_value = at.from(expected);
    element const new_value = at.from(desired);
    element result{};
    run_atomic([&] {
        return ompx_atomic_compare_swap(rank, at.address(), old_value.bytes, new_value.bytes,
                                        result.bytes, at.type());
    });
    return at.to_python(result);
}

void wait_until(nb::handle variable, int cmp, nb::handle value) {
    atomic_target const at("diomp.wait_until", variable);
    element const awaited = at.from(value);
    run([&] {
        return ompx_wait_until(at.address(), at.type(), static_cast<ompx_cmp_t>(cmp),
                               awaited.bytes);
    });
}

/// Length of "diomp.", which the names in messages begin with.
constexpr std::size_t module_prefix = 6;

struct named_operator {
    const char *update_name;
    const char *update_signature;
    const char *fetch_name;
    const char *fetch_signature;
    ompx_op_t op;
};

#define DIOMP_NAMED(name, op)                                                                      \
    {"diomp.atomic_" name,                                                                         \
     "def atomic_" name "(rank: int, target: numpy.ndarray, value: float) -> None",                \
     "diomp.atomic_fetch_" name,                                                                   \
     "def atomic_fetch_" name "(rank: int, target: numpy.ndarray, value: float) -> float", op}
constexpr named_operator operators[] = {
    DIOMP_NAMED("add", OMPX_SUM),  DIOMP_NAMED("and", OMPX_BAND), DIOMP_NAMED("or", OMPX_BOR),
    DIOMP_NAMED("xor", OMPX_BXOR), DIOMP_NAMED("min", OMPX_MIN),  DIOMP_NAMED("max", OMPX_MAX),
};
#undef DIOMP_NAMED

} // namespace

void bind_atomics(nb::module_ &m) {
    for (named_operator const &each : operators) {
        m.def(
            each.update_name + module_prefix,
            [name = each.update_name, op = each.op](int rank, nb::handle target, nb::handle value) {
                update(name, op, rank, target, value);
            },
            nb::arg("rank"), nb::arg("target"), nb::arg("value"), nb::sig(each.update_signature),
            "Updates the element `target` at `rank` atomically; complete after fence().");
        m.def(
            each.fetch_name + module_prefix,
            [name = each.fetch_name, op = each.op](int rank, nb::handle target, nb::handle value) {
                return fetch(name, op, rank, target, value);
            },
            nb::arg("rank"), nb::arg("target"), nb::arg("value"), nb::sig(each.fetch_signature),
            "Updates the element `target` at `rank` atomically and returns its old value.");
    }
    m.def(
        "atomic_swap",
        [](int rank, nb::handle target, nb::handle value) {
            return fetch("diomp.atomic_swap", OMPX_REPLACE, rank, target, value);
        },
        nb::arg("rank"), nb::arg("target"), nb::arg("value"),
        nb::sig("def atomic_swap(rank: int, target: numpy.ndarray, value: float) -> float"),
        "Stores the value atomically and returns the old one.");
    m.def(
        "atomic_set",
        [](int rank, nb::handle target, nb::handle value) {
            update("diomp.atomic_set", OMPX_REPLACE, rank, target, value);
        },
        nb::arg("rank"), nb::arg("target"), nb::arg("value"),
        nb::sig("def atomic_set(rank: int, target: numpy.ndarray, value: float) -> None"),
        "Stores the value atomically; complete after fence().");
    m.def(
        "atomic_fetch",
        [](int rank, nb::handle target) {
            return fetch("diomp.atomic_fetch", OMPX_NO_OP, rank, target, {});
        },
        nb::arg("rank"), nb::arg("target"),
        nb::sig("def atomic_fetch(rank: int, target: numpy.ndarray) -> float"),
        "Reads the element atomically.");
    m.def("atomic_compare_swap", compare_swap, nb::arg("rank"), nb::arg("target"),
          nb::arg("expected"), nb::arg("desired"),
          nb::sig("def atomic_compare_swap(rank: int, target: numpy.ndarray, expected: float, "
                  "desired: float) -> float"),
          "Stores `desired` if the element equals `expected`; returns the old value.");
    m.def("wait_until", wait_until, nb::arg("variable"), nb::arg("cmp"), nb::arg("value"),
          nb::sig("def wait_until(variable: numpy.ndarray, cmp: int, value: int) -> None"),
          "Blocks until `variable cmp value` holds for this rank's integer.");
}

} // namespace diomp::python
