// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// put, get and signals. Calls with equal contiguous arrays take the short path (quick); views
// with regular strides are transferred by their strides.
#include "array.h"
#include "devices.h"
#include "events.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <diomp/binding.hpp>
#include <utility>

namespace diomp::python {

namespace {

/// Copies within a node up to this size keep the GIL: releasing it costs 70 ns, 4 % of a copy of 64
/// KiB, and other threads wait for some 15 microseconds at most, of the interpreter's 5 ms between
/// switches.
constexpr std::size_t max_bytes_with_gil = 262144;
constexpr std::size_t max_dimensions = 64; // of NumPy 2

enum class direction { put, get };

/// Whether the type of the elements holds no references, without a look at its fields.
bool is_plain_number(int type) {
    return (type >= NPY_BOOL && type <= NPY_CLONGDOUBLE) || type == NPY_HALF;
}

/// Whether both are arrays of one shape and one numerical type, in C's order. Arrays that are the
/// same otherwise get here by the longer checks of `transfer`.
bool are_plain(PyObject *a, PyObject *b) {
    if (!PyArray_CheckExact(a) || !PyArray_CheckExact(b)) {
        return false;
    }
    auto *const x = reinterpret_cast<PyArrayObject *>(a);
    auto *const y = reinterpret_cast<PyArrayObject *>(b);
    return PyArray_DESCR(x) == PyArray_DESCR(y) && is_plain_number(PyArray_TYPE(x)) &&
           PyArray_NDIM(x) == PyArray_NDIM(y) &&
           std::equal(PyArray_DIMS(x), PyArray_DIMS(x) + PyArray_NDIM(x), PyArray_DIMS(y)) &&
           (PyArray_FLAGS(x) & PyArray_FLAGS(y) & NPY_ARRAY_C_CONTIGUOUS) != 0;
}

bool is_live(PyArrayObject *array) {
    if (block::num_freed == 0 && !has_device_memory()) {
        return true;
    }
    block const *const from = block_of(array);
    // Memory of unknown origin may be on a device, as NumPy's view of a host device's array is.
    return from == nullptr ? !has_device_memory() : !from->is_freed;
}

template <typename Call>
void run_copy(std::size_t nbytes, Call &&call) {
    if (nbytes <= max_bytes_with_gil && is_single_node()) {
        check(call());
    } else {
        run(call);
    }
}

/// A transfer after all checks.
class transfer {
public:
    /// Throws diomp.Error if the arrays do not fit. A local source that is no array is converted.
    transfer(const char *function, direction dir, nb::handle remote, nb::handle local);

    void move(int rank) const;
    [[nodiscard]] event move_nb(int rank) const;
    [[nodiscard]] bool is_contiguous() const { return is_contiguous_; }
    [[nodiscard]] void *remote() const { return PyArray_DATA(remote_); }
    [[nodiscard]] void *local() const { return PyArray_DATA(local_); }
    [[nodiscard]] std::size_t nbytes() const { return bytes_of(local_); }
    /// Fails if one side is in device memory.
    void require_host() const;

private:
    void check_types() const;
    void read_shape();
    [[noreturn]] void fail_pair(int status, const char *what, const char *remedy) const;
    [[nodiscard]] int move_contiguous(int rank) const;
    [[nodiscard]] int move_sections(int rank) const;
    [[nodiscard]] int start_contiguous(int rank, ompx_event_t *event) const;
    [[nodiscard]] bool is_on_device() const {
        return remote_device_ != host_device || local_device_ != host_device;
    }
    [[nodiscard]] const char *name(bool of_remote) const {
        return of_remote == (dir_ == direction::put) ? "dst" : "src";
    }

    const char *function_;
    direction dir_;
    PyArrayObject *remote_ = nullptr;
    PyArrayObject *local_ = nullptr;
    int remote_device_ = host_device;
    int local_device_ = host_device;
    nb::object remote_object_; ///< the array or layout, perhaps converted from what was passed
    nb::object local_object_;
    bool is_contiguous_ = false;
    int num_dims_ = 0; ///< dimensions with an extent other than 1, fastest at the remote side first
    std::array<std::size_t, max_dimensions> counts_;
    std::array<std::ptrdiff_t, max_dimensions> remote_strides_;
    std::array<std::ptrdiff_t, max_dimensions> local_strides_;
};

transfer::transfer(const char *function, direction dir, nb::handle remote, nb::handle local)
    : function_(function), dir_(dir) {
    argument const remote_argument{function, name(true)};
    argument const local_argument{function, name(false)};
    remote_object_ = to_layout(remote_argument, remote);
    remote_ = dir == direction::put ? to_writable(remote_argument, remote_object_)
                                    : to_array(remote_argument, remote_object_);
    if (dir == direction::get) {
        local_object_ = to_layout(local_argument, local);
        local_ = to_writable(local_argument, local_object_);
    } else {
        if (has_memory(local)) {
            local_object_ = to_layout(local_argument, local);
        } else {
            local_object_ = to_values(local_argument, local, PyArray_DESCR(remote_));
        }
        local_ = to_array(local_argument, local_object_);
    }
    remote_device_ = device_of(remote_);
    local_device_ = device_of(local_);
    check_types();
    read_shape();
}

void transfer::fail_pair(int status, const char *what, const char *remedy) const {
    nb::handle const dst(reinterpret_cast<PyObject *>(dir_ == direction::put ? remote_ : local_));
    nb::handle const src(reinterpret_cast<PyObject *>(dir_ == direction::put ? local_ : remote_));
    fail(function_, describe({function_, "dst"}, dst) + ", " + describe({function_, "src"}, src),
         status, what, remedy);
}

void transfer::check_types() const {
    if (!have_same_type(remote_, local_)) {
        fail_pair(OMPX_ERR_ARG, "dst and src have different dtypes",
                  "convert one of them, such as src.astype(dst.dtype)");
    }
}

void transfer::read_shape() {
    struct dimension {
        std::size_t count;
        std::ptrdiff_t remote;
        std::ptrdiff_t local;
    };
    std::array<dimension, max_dimensions> all;
    auto const next = [](PyArrayObject *array, int &i) {
        while (i < PyArray_NDIM(array) && PyArray_DIM(array, i) == 1) {
            ++i;
        }
        return i < PyArray_NDIM(array);
    };
    int r = 0;
    int l = 0;
    while (true) {
        bool const has_remote = next(remote_, r);
        bool const has_local = next(local_, l);
        if (!has_remote || !has_local || PyArray_DIM(remote_, r) != PyArray_DIM(local_, l)) {
            break;
        }
        all[static_cast<std::size_t>(num_dims_++)] = {
            static_cast<std::size_t>(PyArray_DIM(remote_, r)), PyArray_STRIDE(remote_, r),
            PyArray_STRIDE(local_, l)};
        ++r;
        ++l;
    }
    if (r < PyArray_NDIM(remote_) || l < PyArray_NDIM(local_)) {
        fail_pair(OMPX_ERR_MISMATCH, "dst and src have different shapes",
                  "pass sections with the same number of elements in each dimension");
    }
    auto const in_order = [this](int flag) {
        return (PyArray_FLAGS(remote_) & PyArray_FLAGS(local_) & flag) != 0;
    };
    is_contiguous_ = in_order(NPY_ARRAY_C_CONTIGUOUS) || in_order(NPY_ARRAY_F_CONTIGUOUS);

    auto const end = all.begin() + num_dims_;
    bool const is_empty =
        std::any_of(all.begin(), end, [](const dimension &each) { return each.count == 0; });
    std::sort(all.begin(), end, [](const dimension &a, const dimension &b) {
        return std::abs(a.remote) < std::abs(b.remote);
    });
    std::size_t i = 0;
    for (auto each = all.begin(); each != end; ++each, ++i) {
        bool const repeats = each->remote == 0 || (each->local == 0 && dir_ == direction::get);
        if (repeats && each->count > 1 && !is_empty) { // NumPy gives empty arrays strides of 0
            fail_pair(OMPX_ERR_ARG, "several elements of an array have the same address",
                      "pass an array that is not the result of a broadcast");
        }
        counts_[i] = each->count;
        remote_strides_[i] = each->remote;
        local_strides_[i] = each->local;
    }
}

void transfer::require_host() const {
    if (is_on_device()) {
        fail_pair(OMPX_ERR_UNSUPPORTED, "this call takes no device memory",
                  "use put, then fence, then set the signal");
    }
}

int transfer::move_contiguous(int rank) const {
    if (is_on_device()) {
        return dir_ == direction::put ? ompx_target_put(rank, remote(), remote_device_, local(),
                                                        local_device_, nbytes())
                                      : ompx_target_get(local(), local_device_, rank, remote(),
                                                        remote_device_, nbytes());
    }
    return dir_ == direction::put ? ompx_put(rank, remote(), local(), nbytes())
                                  : ompx_get(local(), rank, remote(), nbytes());
}

int transfer::move_sections(int rank) const {
    bool const is_put = dir_ == direction::put;
    ompx_fortran_sections const both{
        is_put ? remote() : local(),
        is_put ? local() : remote(),
        static_cast<std::size_t>(PyArray_ITEMSIZE(local_)),
        num_dims_,
        counts_.data(),
        is_put ? remote_strides_.data() : local_strides_.data(),
        is_put ? local_strides_.data() : remote_strides_.data(),
    };
    if (is_on_device()) {
        return is_put
                   ? ompx_fortran_target_put(function_, rank, &both, remote_device_, local_device_)
                   : ompx_fortran_target_get(function_, rank, &both, local_device_, remote_device_);
    }
    return is_put ? ompx_fortran_put(function_, rank, &both)
                  : ompx_fortran_get(function_, rank, &both);
}

int transfer::start_contiguous(int rank, ompx_event_t *event) const {
    if (is_on_device()) {
        return dir_ == direction::put ? ompx_target_put_nb(rank, remote(), remote_device_, local(),
                                                           local_device_, nbytes(), event)
                                      : ompx_target_get_nb(local(), local_device_, rank, remote(),
                                                           remote_device_, nbytes(), event);
    }
    return dir_ == direction::put ? ompx_put_nb(rank, remote(), local(), nbytes(), event)
                                  : ompx_get_nb(local(), rank, remote(), nbytes(), event);
}

void transfer::move(int rank) const {
    run_copy(nbytes(),
             [&] { return is_contiguous_ ? move_contiguous(rank) : move_sections(rank); });
}

event transfer::move_nb(int rank) const {
    nb::object const buffers = nb::make_tuple(nb::handle(reinterpret_cast<PyObject *>(remote_)),
                                              nb::handle(reinterpret_cast<PyObject *>(local_)));
    return start(buffers, [&](ompx_event_t *event) {
        if (is_contiguous_) {
            return start_contiguous(rank, event);
        }
        // Sections are complete on return.
        int const status = move_sections(rank);
        return status == OMPX_SUCCESS ? ompx_fence() : status;
    });
}

void put(int rank, nb::handle dst, nb::handle src) {
    transfer("diomp.put", direction::put, dst, src).move(rank);
}

nb::object get(nb::object dst, int rank, nb::handle src) {
    transfer("diomp.get", direction::get, src, dst).move(rank);
    return dst;
}

/// A rank as programs pass it nearly always: an exact int that fits.
bool is_rank(PyObject *value, int &rank) {
    if (!PyLong_CheckExact(value)) {
        return false;
    }
    int overflow = 0;
    long const number = PyLong_AsLongAndOverflow(value, &overflow);
    rank = static_cast<int>(number);
    return overflow == 0 && rank == number;
}

/// Whether the arguments are two live arrays that put or get may copy as they are.
bool are_quick(PyObject *to, PyObject *from) {
    auto *const dst = reinterpret_cast<PyArrayObject *>(to);
    return are_plain(to, from) && PyArray_ISWRITEABLE(dst) && is_live(dst) &&
           is_live(reinterpret_cast<PyArrayObject *>(from));
}

/// Sets Python's exception instead of throwing, for callers that are not nanobind's.
template <typename Call>
bool copies(std::size_t nbytes, Call &&call) {
    try {
        run_copy(nbytes, call);
        return true;
    } catch (nb::python_error &error) {
        error.restore();
        return false;
    }
}

// Calls with positional arguments that are plain come here, before nanobind converts arguments: its
// general conversion takes 30 ns, and 100 ns after a copy of 64 KiB, which leaves little in the
// first-level cache.
template <direction Way>
vectorcallfunc bound = nullptr; // nanobind's function, for all other calls

template <direction Way>
PyObject *quick(PyObject *self, PyObject *const *args, std::size_t nargs, PyObject *names) {
    constexpr bool is_put = Way == direction::put;
    constexpr std::size_t rank_at = is_put ? 0 : 1;
    constexpr std::size_t dst_at = is_put ? 1 : 0;
    int rank = 0;
    if (names != nullptr || PyVectorcall_NARGS(nargs) != 3 || !is_rank(args[rank_at], rank) ||
        !are_quick(args[dst_at], args[2])) [[unlikely]] {
        return bound<Way>(self, args, nargs, names);
    }
    auto *const dst = reinterpret_cast<PyArrayObject *>(args[dst_at]);
    void *const to = PyArray_DATA(dst);
    void *const from = PyArray_DATA(reinterpret_cast<PyArrayObject *>(args[2]));
    std::size_t const nbytes = bytes_of(dst);
    bool const is_done = copies(nbytes, [&] {
        return is_put ? ompx_put(rank, to, from, nbytes) : ompx_get(to, rank, from, nbytes);
    });
    return is_done ? Py_NewRef(is_put ? Py_None : args[dst_at]) : nullptr;
}

/// Puts `quick` in front of a function: Python calls functions by the pointer at this offset.
vectorcallfunc replace_vectorcall(const nb::object &function, vectorcallfunc quick) {
    auto const offset = Py_TYPE(function.ptr())->tp_vectorcall_offset;
    void *const place = reinterpret_cast<char *>(function.ptr()) + offset;
    return std::exchange(*static_cast<vectorcallfunc *>(place), quick);
}

event put_nb(int rank, nb::handle dst, nb::handle src) {
    return transfer("diomp.put_nb", direction::put, dst, src).move_nb(rank);
}

event get_nb(nb::handle dst, int rank, nb::handle src) {
    return transfer("diomp.get_nb", direction::get, src, dst).move_nb(rank);
}

std::uint64_t *to_signal(const char *function, nb::handle value) {
    return static_cast<std::uint64_t *>(to_element({function, "signal"}, value, OMPX_UINT64));
}

void put_signal(int rank, nb::handle dst, nb::handle src, nb::handle signal, std::uint64_t value,
                int op) {
    constexpr const char *function = "diomp.put_signal";
    (void)to_contiguous({function, "dst"}, dst);
    nb::object packed = nb::borrow(src);
    if (is_array(src) && !is_contiguous(reinterpret_cast<PyArrayObject *>(src.ptr()))) {
        packed =
            nb::steal(PyArray_NewCopy(reinterpret_cast<PyArrayObject *>(src.ptr()), NPY_CORDER));
    }
    transfer const both(function, direction::put, dst, packed);
    both.require_host();
    if (!both.is_contiguous()) {
        fail({function, "dst"}, dst, OMPX_ERR_ARG, "is in another order of memory than src",
             "pass arrays that are both in C's or both in Fortran's order");
    }
    std::uint64_t *const flag = to_signal(function, signal);
    run_copy(both.nbytes(), [&] {
        return ompx_put_signal(rank, both.remote(), both.local(), both.nbytes(), flag, value,
                               static_cast<ompx_signal_op_t>(op));
    });
}

void signal_wait(nb::handle signal, int cmp, std::uint64_t value) {
    std::uint64_t const *const flag = to_signal("diomp.signal_wait", signal);
    run([&] { return ompx_signal_wait(flag, static_cast<ompx_cmp_t>(cmp), value); });
}

} // namespace

void bind_transfers(nb::module_ &m) {
    m.def("put", put, nb::arg("rank"), nb::arg("dst"), nb::arg("src"),
          nb::sig("def put(rank: int, dst: diomp.devices.Operand, "
                  "src: diomp.devices.Source) -> None"),
          "Copies src to the counterpart of dst at `rank`. Both have one shape and dtype and any "
          "strides, in host or device memory; src may also be a scalar or list. Returns when src "
          "may be reused; complete at "
          "the target after fence().");
    m.def(
        "get", get, nb::arg("dst"), nb::arg("rank"), nb::arg("src"),
        nb::sig("def get(dst: diomp.devices.OperandT, rank: int, src: diomp.devices.Operand) -> "
                "diomp.devices.OperandT"),
        "Copies the counterpart of src at `rank` into dst and returns dst. Blocks until dst holds "
        "the data.");
    m.def(
        "put_nb", put_nb, nb::arg("rank"), nb::arg("dst"), nb::arg("src"),
        nb::sig("def put_nb(rank: int, dst: diomp.devices.Operand, "
                "src: diomp.devices.Source) -> Event"),
        "Non-blocking put(): src must not be changed until the event is complete. Arrays that are "
        "not contiguous are transferred on return.");
    m.def("get_nb", get_nb, nb::arg("dst"), nb::arg("rank"), nb::arg("src"),
          nb::sig("def get_nb(dst: diomp.devices.Operand, rank: int, "
                  "src: diomp.devices.Operand) -> Event"),
          "Non-blocking get(): dst must not be used until the event is complete.");
    m.def("put_signal", put_signal, nb::arg("rank"), nb::arg("dst"), nb::arg("src"),
          nb::arg("signal"), nb::arg("value"), nb::arg("op") = static_cast<int>(OMPX_SIGNAL_SET),
          nb::sig("def put_signal(rank: int, dst: numpy.ndarray, src: numpy.typing.ArrayLike, "
                  "signal: numpy.ndarray, value: int, op: int = 0) -> None"),
          "put() of contiguous memory, then sets (SIGNAL_SET) or adds to (SIGNAL_ADD) the uint64 "
          "`signal` at `rank`: a rank that sees the new value sees the data.");
    m.def("signal_wait", signal_wait, nb::arg("signal"), nb::arg("cmp"), nb::arg("value"),
          nb::sig("def signal_wait(signal: numpy.ndarray, cmp: int, value: int) -> None"),
          "Blocks until `signal cmp value` holds for this rank's uint64, with CMP_EQ, CMP_NE, "
          "CMP_GT, CMP_GE, CMP_LT or CMP_LE.");
    bound<direction::put> = replace_vectorcall(m.attr("put"), quick<direction::put>);
    bound<direction::get> = replace_vectorcall(m.attr("get"), quick<direction::get>);
}

} // namespace diomp::python
