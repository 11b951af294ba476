// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Collectives on contiguous arrays in host or device memory, blocking and with an event. Sizes are
// checked here where a member can see them: C's functions get no sizes of buffers.
#include "array.h"
#include "devices.h"
#include "events.h"
#include "groups.h"
#include "operators.h"

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

namespace diomp::python {

namespace {

/// The arguments of one call on this member.
class member_call {
public:
    member_call(const char *function, const group *members)
        : function_(function), group_(handle_of(members)) {}

    [[nodiscard]] ompx_group_t group() const { return group_; }
    [[nodiscard]] std::size_t size() const {
        return static_cast<std::size_t>(check(ompx_group_size(group_)));
    }
    [[nodiscard]] bool is_root(int root) const { return check(ompx_group_rank(group_)) == root; }
    [[nodiscard]] PyArrayObject *source(nb::handle value) {
        nb::object const layout = keep({function_, "src"}, value);
        return add(to_contiguous({function_, "src"}, layout));
    }
    [[nodiscard]] PyArrayObject *target(nb::handle value, const char *name = "dst") {
        nb::object const layout = keep({function_, name}, value);
        return add(to_contiguous_writable({function_, name}, layout));
    }
    /// The device of all arrays, or host_device.
    [[nodiscard]] int device() const { return device_; }
    /// The objects that an operation in flight uses: `given` and what arrays were made of them.
    [[nodiscard]] nb::object objects(const nb::object &given) const {
        return given + nb::make_tuple(kept_);
    }
    /// Checks that dst and src have one dtype, number of elements, and order of memory.
    void check_equal(PyArrayObject *dst, PyArrayObject *src) const;
    /// Checks arrays of which `larger` has `factor` times the blocks of `smaller`, of one dtype.
    void check_blocks(PyArrayObject *larger, PyArrayObject *smaller, std::size_t factor) const;
    [[nodiscard]] reduction reduce_by(nb::handle op, PyArrayObject *src) const {
        return reduction_of(function_, op, src);
    }

private:
    /// Checks that the arrays have one dtype and that `larger` has `factor` times the elements of
    /// `smaller`.
    void check_sizes(PyArrayObject *larger, PyArrayObject *smaller, std::size_t factor) const;
    nb::object keep(const argument &given, nb::handle value) {
        nb::object layout = to_layout(given, value);
        kept_.append(layout);
        return layout;
    }
    /// Checks that the array is on the device of the others.
    PyArrayObject *add(PyArrayObject *array) {
        int const device = device_of(array);
        if (has_arrays_ && device != device_) {
            fail(function_, "", OMPX_ERR_ARG, "dst and src are not on one device",
                 "copy one of them by diomp.put or diomp.get");
        }
        has_arrays_ = true;
        device_ = device;
        return array;
    }

    const char *function_;
    ompx_group_t group_;
    nb::list kept_;
    bool has_arrays_ = false;
    int device_ = host_device;
};

void member_call::check_sizes(PyArrayObject *larger, PyArrayObject *smaller,
                              std::size_t factor) const {
    bool const same_type = have_same_type(larger, smaller);
    if (same_type && count_of(larger) == count_of(smaller) * factor) {
        return;
    }
    auto const text = [](PyArrayObject *array) {
        return describe({"", "array"}, nb::handle(reinterpret_cast<PyObject *>(array)));
    };
    std::string const arguments = text(larger) + ", " + text(smaller);
    if (!same_type) {
        fail(function_, arguments, OMPX_ERR_ARG, "dst and src have different dtypes",
             "convert one of them, such as src.astype(dst.dtype)");
    }
    fail(function_, arguments, OMPX_ERR_ARG,
         factor == 1 ? "dst and src have different numbers of elements"
                     : "the array with a block for each member does not have " +
                           std::to_string(factor) + " times as many elements as the other one",
         factor == 1 ? "pass arrays of equal size" : "allocate it with the shape (size, ...)");
}

void member_call::check_equal(PyArrayObject *dst, PyArrayObject *src) const {
    check_sizes(dst, src, 1);
    if (!have_same_order(dst, src)) {
        fail({function_, "dst"}, nb::handle(reinterpret_cast<PyObject *>(dst)), OMPX_ERR_ARG,
             "is in another order of memory than src",
             "pass arrays that are both in C's or both in Fortran's order");
    }
}

void member_call::check_blocks(PyArrayObject *larger, PyArrayObject *smaller,
                               std::size_t factor) const {
    check_sizes(larger, smaller, factor);
    check_c_order({function_, "array"}, larger);
    check_c_order({function_, "array"}, smaller);
}

/// C's four functions of a collective.
template <typename Blocking, typename Nonblocking, typename OnDevice, typename OnDeviceNonblocking>
struct forms {
    Blocking blocking;
    Nonblocking nonblocking;
    OnDevice on_device; ///< with the device after the addresses
    OnDeviceNonblocking on_device_nonblocking;
};

/// Makes the call, with an event if is_nb: addresses, then the other arguments. `given` are the
/// objects that it uses.
template <bool is_nb, typename Forms, typename... Addresses, typename... Arguments>
std::conditional_t<is_nb, event, void>
make_call(const member_call &call, const nb::object &given, const Forms &of,
          std::tuple<Addresses...> addresses, Arguments... arguments) {
    nb::object const objects = call.objects(given);
    if constexpr (is_nb) {
        return start(objects, [&](ompx_event_t *event) {
            return std::apply(
                [&](auto... each) {
                    return call.device() == host_device
                               ? of.nonblocking(each..., arguments..., call.group(), event)
                               : of.on_device_nonblocking(each..., call.device(), arguments...,
                                                          call.group(), event);
                },
                addresses);
        });
    } else {
        run([&] {
            return std::apply(
                [&](auto... each) {
                    return call.device() == host_device
                               ? of.blocking(each..., arguments..., call.group())
                               : of.on_device(each..., call.device(), arguments..., call.group());
                },
                addresses);
        });
        throw_pending(given);
    }
}

template <bool is_nb>
using outcome = std::conditional_t<is_nb, event, void>;

template <bool is_nb>
outcome<is_nb> bcast(nb::handle value, int root, const group *members) {
    member_call call(is_nb ? "diomp.bcast_nb" : "diomp.bcast", members);
    PyArrayObject *const array =
        call.is_root(root) ? call.source(value) : call.target(value, "array");
    return make_call<is_nb>(call, nb::make_tuple(value),
                            forms{ompx_bcast_from, ompx_bcast_from_nb, ompx_target_bcast_from,
                                  ompx_target_bcast_from_nb},
                            std::tuple(PyArray_DATA(array)), bytes_of(array), root);
}

template <bool is_nb>
outcome<is_nb> reduce(nb::handle dst, nb::handle src, nb::handle op, int root,
                      const group *members) {
    member_call call(is_nb ? "diomp.reduce_nb" : "diomp.reduce", members);
    PyArrayObject *const from = call.source(src);
    void *to = nullptr;
    if (call.is_root(root)) {
        PyArrayObject *const target = call.target(dst);
        call.check_equal(target, from);
        to = PyArray_DATA(target);
    }
    reduction const by = call.reduce_by(op, from);
    return make_call<is_nb>(
        call, nb::make_tuple(dst, src, op),
        forms{ompx_reduce, ompx_reduce_nb, ompx_target_reduce, ompx_target_reduce_nb},
        std::tuple<void *, const void *>(to, PyArray_DATA(from)), count_of(from), by.type, by.op,
        root);
}

/// allreduce, scan and exscan, which have equal arguments.
template <bool is_nb, typename Forms>
outcome<is_nb> reduce_to_all(const char *function, const Forms &of, nb::handle dst, nb::handle src,
                             nb::handle op, const group *members) {
    member_call call(function, members);
    PyArrayObject *const from = call.source(src);
    PyArrayObject *const to = call.target(dst);
    call.check_equal(to, from);
    reduction const by = call.reduce_by(op, from);
    return make_call<is_nb>(call, nb::make_tuple(dst, src, op), of,
                            std::tuple<void *, const void *>(PyArray_DATA(to), PyArray_DATA(from)),
                            count_of(from), by.type, by.op);
}

template <bool is_nb>
outcome<is_nb> allreduce(nb::handle dst, nb::handle src, nb::handle op, const group *members) {
    return reduce_to_all<is_nb>(
        is_nb ? "diomp.allreduce_nb" : "diomp.allreduce",
        forms{ompx_allreduce, ompx_allreduce_nb, ompx_target_allreduce, ompx_target_allreduce_nb},
        dst, src, op, members);
}
template <bool is_nb>
outcome<is_nb> scan(nb::handle dst, nb::handle src, nb::handle op, const group *members) {
    return reduce_to_all<is_nb>(
        is_nb ? "diomp.scan_nb" : "diomp.scan",
        forms{ompx_scan, ompx_scan_nb, ompx_target_scan, ompx_target_scan_nb}, dst, src, op,
        members);
}
template <bool is_nb>
outcome<is_nb> exscan(nb::handle dst, nb::handle src, nb::handle op, const group *members) {
    return reduce_to_all<is_nb>(
        is_nb ? "diomp.exscan_nb" : "diomp.exscan",
        forms{ompx_exscan, ompx_exscan_nb, ompx_target_exscan, ompx_target_exscan_nb}, dst, src, op,
        members);
}

template <bool is_nb>
outcome<is_nb> reduce_scatter(nb::handle dst, nb::handle src, nb::handle op, const group *members) {
    member_call call(is_nb ? "diomp.reduce_scatter_nb" : "diomp.reduce_scatter", members);
    PyArrayObject *const from = call.source(src);
    PyArrayObject *const to = call.target(dst);
    call.check_blocks(from, to, call.size());
    reduction const by = call.reduce_by(op, from);
    return make_call<is_nb>(call, nb::make_tuple(dst, src, op),
                            forms{ompx_reduce_scatter, ompx_reduce_scatter_nb,
                                  ompx_target_reduce_scatter, ompx_target_reduce_scatter_nb},
                            std::tuple<void *, const void *>(PyArray_DATA(to), PyArray_DATA(from)),
                            count_of(to), by.type, by.op);
}

template <bool is_nb>
outcome<is_nb> gather(nb::handle dst, nb::handle src, int root, const group *members) {
    member_call call(is_nb ? "diomp.gather_nb" : "diomp.gather", members);
    PyArrayObject *const from = call.source(src);
    void *to = nullptr;
    if (call.is_root(root)) {
        PyArrayObject *const target = call.target(dst);
        call.check_blocks(target, from, call.size());
        to = PyArray_DATA(target);
    }
    return make_call<is_nb>(
        call, nb::make_tuple(dst, src),
        forms{ompx_gather, ompx_gather_nb, ompx_target_gather, ompx_target_gather_nb},
        std::tuple<void *, const void *>(to, PyArray_DATA(from)), bytes_of(from), root);
}

template <bool is_nb>
outcome<is_nb> scatter(nb::handle dst, nb::handle src, int root, const group *members) {
    member_call call(is_nb ? "diomp.scatter_nb" : "diomp.scatter", members);
    PyArrayObject *const to = call.target(dst);
    void *from = nullptr;
    if (call.is_root(root)) {
        PyArrayObject *const source = call.source(src);
        call.check_blocks(source, to, call.size());
        from = PyArray_DATA(source);
    }
    return make_call<is_nb>(
        call, nb::make_tuple(dst, src),
        forms{ompx_scatter, ompx_scatter_nb, ompx_target_scatter, ompx_target_scatter_nb},
        std::tuple<void *, const void *>(PyArray_DATA(to), from), bytes_of(to), root);
}

template <bool is_nb>
outcome<is_nb> allgather(nb::handle dst, nb::handle src, const group *members) {
    member_call call(is_nb ? "diomp.allgather_nb" : "diomp.allgather", members);
    PyArrayObject *const from = call.source(src);
    PyArrayObject *const to = call.target(dst);
    call.check_blocks(to, from, call.size());
    return make_call<is_nb>(
        call, nb::make_tuple(dst, src),
        forms{ompx_allgather, ompx_allgather_nb, ompx_target_allgather, ompx_target_allgather_nb},
        std::tuple<void *, const void *>(PyArray_DATA(to), PyArray_DATA(from)), bytes_of(from));
}

template <bool is_nb>
outcome<is_nb> alltoall(nb::handle dst, nb::handle src, const group *members) {
    member_call call(is_nb ? "diomp.alltoall_nb" : "diomp.alltoall", members);
    PyArrayObject *const from = call.source(src);
    PyArrayObject *const to = call.target(dst);
    call.check_blocks(to, from, 1);
    std::size_t const block_bytes = bytes_of(from) / call.size();
    if (block_bytes * call.size() != bytes_of(from)) {
        fail(is_nb ? "diomp.alltoall_nb" : "diomp.alltoall",
             describe({"", "src"}, nb::handle(reinterpret_cast<PyObject *>(from))), OMPX_ERR_ARG,
             "src is not divisible into a block for each member",
             "allocate it with the shape (size, ...)");
    }
    return make_call<is_nb>(
        call, nb::make_tuple(dst, src),
        forms{ompx_alltoall, ompx_alltoall_nb, ompx_target_alltoall, ompx_target_alltoall_nb},
        std::tuple<void *, const void *>(PyArray_DATA(to), PyArray_DATA(from)), block_bytes);
}

/// Defines NAME and NAME_nb. The arguments' names and defaults follow the functions.
template <typename Blocking, typename Nonblocking, typename... Extra>
void define(nb::module_ &m, const std::string &name, Blocking blocking, Nonblocking nonblocking,
            const std::string &arguments, const char *doc, const Extra &...extra) {
    std::string const signature = "def " + name + "(" + arguments + ") -> None";
    std::string const signature_nb = "def " + name + "_nb(" + arguments + ") -> Event";
    std::string const doc_nb = "Non-blocking " + name +
                               "(): the arrays must not be used until the "
                               "event is complete.";
    m.def(name.c_str(), blocking, extra..., nb::sig(signature.c_str()), doc);
    m.def((name + "_nb").c_str(), nonblocking, extra..., nb::sig(signature_nb.c_str()),
          doc_nb.c_str());
}

constexpr const char *rooted =
    "dst: diomp.devices.Operand | None, src: diomp.devices.Operand, root: int = 0, "
    "group: Group | None = None";
constexpr const char *reducing =
    "dst: diomp.devices.Operand, src: diomp.devices.Operand, op: int | UserOp = 1, "
    "group: Group | None = None";
constexpr const char *plain =
    "dst: diomp.devices.Operand, src: diomp.devices.Operand, group: Group | None = None";

void bind_moves(nb::module_ &m) {
    auto const dst = nb::arg("dst");
    auto const src = nb::arg("src");
    auto const root = nb::arg("root") = 0;
    auto const none = nb::arg("group") = nb::none();
    define(m, "bcast", bcast<false>, bcast<true>,
           "array: diomp.devices.Operand, root: int = 0, group: Group | None = None",
           "Copies the array of the root to all members. All are in one order of memory: C's or "
           "Fortran's.",
           nb::arg("array"), root, none);
    define(m, "gather", gather<false>, gather<true>, rooted,
           "dst[size, ...] at the root: src of each member. dst may be None elsewhere.", dst.none(),
           src, root, none);
    define(m, "scatter", scatter<false>, scatter<true>,
           "dst: diomp.devices.Operand, src: diomp.devices.Operand | None, root: int = 0, group: "
           "Group | None = None",
           "dst of member i: block i of src[size, ...] of the root. src may be None elsewhere.",
           dst, src.none(), root, none);
    define(m, "allgather", allgather<false>, allgather<true>, plain,
           "dst[size, ...] on all members: src of each member.", dst, src, none);
    define(m, "alltoall", alltoall<false>, alltoall<true>, plain,
           "Block i of src[size, ...] goes to member i; dst[size, ...] has a block of each member.",
           dst, src, none);
}

void bind_reductions(nb::module_ &m) {
    auto const dst = nb::arg("dst");
    auto const src = nb::arg("src");
    auto const op = nb::arg("op") = static_cast<int>(OMPX_SUM);
    auto const none = nb::arg("group") = nb::none();
    define(m, "reduce", reduce<false>, reduce<true>,
           "dst: diomp.devices.Operand | None, src: diomp.devices.Operand, op: int | UserOp = 1, "
           "root: int = 0, "
           "group: Group | None = None",
           "dst at the root: the combined src of all members. dst may be None elsewhere.",
           dst.none(), src, op, nb::arg("root") = 0, none);
    define(m, "allreduce", allreduce<false>, allreduce<true>, reducing,
           "dst on all members: the combined src of all members; dst may be src.", dst, src, op,
           none);
    define(m, "reduce_scatter", reduce_scatter<false>, reduce_scatter<true>, reducing,
           "dst of member i: block i of the combined src[size, ...].", dst, src, op, none);
    define(m, "scan", scan<false>, scan<true>, reducing,
           "dst of member i: src of members 0 to i combined in that order.", dst, src, op, none);
    define(m, "exscan", exscan<false>, exscan<true>, reducing,
           "dst of member i: src of members 0 to i - 1 combined; dst of member 0 is unchanged.",
           dst, src, op, none);
}

} // namespace

void bind_collectives(nb::module_ &m) {
    bind_moves(m);
    bind_reductions(m);
    bind_variable_collectives(m);
}

} // namespace diomp::python
