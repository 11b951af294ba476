// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Global memory as NumPy arrays. The garbage collector frees no global memory: it runs at different
// times on different ranks, and frees are collective.
#include "array.h"
#include "devices.h"

#include <cstdint>
#include <cstring>
#include <diomp/binding.hpp>
#include <map>
#include <nanobind/stl/vector.h>
#include <vector>

namespace diomp::python {

namespace {

/// A collective allocation of this module that has not been freed. The numbers are equal on all
/// ranks, since all ranks allocate in the same order. Guarded by the GIL.
struct allocation {
    void *address = nullptr;
    int device = host_device;
    bool is_dropped = false; ///< the garbage collector has collected all its arrays
};
std::map<std::uint64_t, allocation> &allocations() {
    static auto *const all = new std::map<std::uint64_t, allocation>; // outlives the interpreter
    return *all;
}

/// The base object of the arrays: a block that records its end.
struct tracked_block : block {
    tracked_block(const block &given, std::uint64_t given_number)
        : block(given), number(given_number) {}
    tracked_block(const tracked_block &) = delete;
    tracked_block &operator=(const tracked_block &) = delete;
    ~tracked_block() {
        num_freed -= is_freed ? 1 : 0;
        if (auto const found = allocations().find(number); found != allocations().end()) {
            found->second.is_dropped = true;
        }
    }
    std::uint64_t number;
};

constexpr const char *allocate_name = "diomp.empty";

/// Size of an array in bytes; throws for types without a size or with references, and for shapes
/// that no array can have.
std::size_t checked_bytes(const PyArray_Dims &shape, PyArray_Descr *descr, std::size_t item_bytes) {
    std::string const arguments =
        "dtype=" + text_of(nb::borrow(reinterpret_cast<PyObject *>(descr)));
    if (PyDataType_REFCHK(descr) != 0) {
        fail(allocate_name, arguments, OMPX_ERR_ARG,
             "the elements are references to Python objects, which mean nothing to other ranks",
             "use a numerical dtype, or send bytes of pickle");
    }
    std::size_t nbytes = item_bytes;
    bool is_valid = nbytes > 0;
    for (int i = 0; i < shape.len; ++i) {
        is_valid = is_valid && shape.ptr[i] >= 0 &&
                   !__builtin_mul_overflow(nbytes, static_cast<std::size_t>(shape.ptr[i]), &nbytes);
    }
    if (!is_valid || nbytes > PTRDIFF_MAX) {
        fail(allocate_name, arguments, OMPX_ERR_ARG,
             "the dtype has no size, or the shape has a negative extent or too many elements",
             "pass extents of 0 or more, and a dtype with a size, such as 'S8' for bytes");
    }
    return nbytes;
}

bool g_has_device_memory = false; // guarded by the GIL

/// OpenMP's allocator of a kind of memory, for ompx_target_alloc.
std::uintptr_t allocator_of(int kind) {
    switch (kind) {
    case OMPX_MEM_SYMMETRIC:
        return OMPX_SYMMETRIC_MEM_ALLOC_VALUE_;
    case OMPX_MEM_ASYMMETRIC:
        return OMPX_ASYMMETRIC_MEM_ALLOC_VALUE_;
    case OMPX_MEM_LOCAL:
        return OMPX_LOCAL_MEM_ALLOC_VALUE_;
    default:
        return 0;
    }
}

int free_memory(void *address, int device) {
    return device == host_device ? ompx_free(address) : ompx_target_free(address, device);
}

/// An array, or the layout of one on a device, whose memory is not initialised.
nb::object allocate(nb::handle shape, nb::handle dtype, int kind, bool fortran_order, bool zero,
                    int device) {
    PyArray_Dims dims{nullptr, 0};
    PyArray_Descr *descr = nullptr;
    if (PyArray_DescrConverter(dtype.ptr(), &descr) == 0) {
        throw nb::python_error();
    }
    nb::object const owned = nb::steal(reinterpret_cast<PyObject *>(descr));
    auto const item_bytes = nb::cast<std::size_t>(owned.attr("itemsize"));
    if (PyArray_IntpConverter(shape.ptr(), &dims) == 0) {
        throw nb::python_error();
    }
    std::vector<npy_intp> extents(dims.ptr, dims.ptr + dims.len);
    PyDimMem_FREE(dims.ptr);
    dims.ptr = extents.data();
    std::size_t const nbytes = checked_bytes(dims, descr, item_bytes);

    block made{nullptr, nbytes, static_cast<ompx_mem_kind_t>(kind), device, false};
    if (device != host_device) {
        ompx_device_memory unused{};
        check(ompx_device_memory_of(device, &unused)); // with a status, unlike ompx_target_alloc()
        g_has_device_memory = true;
    }
    run([&] {
        made.address = device == host_device
                           ? ompx_alloc(nbytes, 0, made.kind)
                           : ompx_target_alloc(nbytes, device, allocator_of(kind));
        if (made.address != nullptr && zero) {
            std::memset(made.address, 0, nbytes);
        }
        return made.address != nullptr ? OMPX_SUCCESS : ompx_last_error_status();
    });
    static std::uint64_t next_number = 0;
    std::uint64_t number = UINT64_MAX;
    if (made.kind != OMPX_MEM_LOCAL) {
        number = next_number++;
        allocations()[number] = {made.address, device, false};
    }
    nb::object const base =
        nb::cast(new tracked_block(made, number), nb::rv_policy::take_ownership);
    int const order = fortran_order ? NPY_ARRAY_F_CONTIGUOUS : 0;
    return array_at(made.address, descr, dims, nullptr,
                    order | NPY_ARRAY_WRITEABLE | NPY_ARRAY_ALIGNED, base);
}

void free_array(nb::handle value) {
    argument const given{"diomp.free", "array"};
    nb::object const layout = to_layout(given, value);
    PyArrayObject *const array = to_array(given, layout);
    block *const found = block_of(array);
    if (found == nullptr || found->kind == OMPX_MEM_NONE) {
        fail(given, value, OMPX_ERR_ADDRESS, "was not allocated by this package",
             "pass an array of diomp.zeros, empty, full or array, or a view of one");
    }
    auto *const owner = static_cast<tracked_block *>(found);
    run([&] { return free_memory(owner->address, owner->device); });
    owner->is_freed = true;
    ++block::num_freed;
    allocations().erase(owner->number);
    PyArray_CLEARFLAGS(array, NPY_ARRAY_WRITEABLE); // finds at least stores through this array
}

std::vector<bool> dropped() {
    std::vector<bool> all;
    for (auto const &[number, each] : allocations()) {
        all.push_back(each.is_dropped);
    }
    return all;
}

/// Frees the allocations that are marked; collective with equal arguments.
std::size_t free_marked(const std::vector<bool> &marks) {
    std::vector<std::uint64_t> numbers;
    std::size_t at = 0;
    for (auto const &[number, each] : allocations()) {
        if (at < marks.size() && marks[at++]) {
            numbers.push_back(number);
        }
    }
    for (std::uint64_t const number : numbers) {
        run([given = allocations().at(number)] {
            return free_memory(given.address, given.device);
        });
        allocations().erase(number);
    }
    return numbers.size();
}

nb::object remote_view(nb::handle value, int rank) {
    PyArrayObject *const array = to_array({"diomp.remote_view", "array"}, value);
    void *const address = ompx_remote_ptr(PyArray_DATA(array), rank);
    if (address == nullptr) {
        return nb::none();
    }
    PyArray_Dims const shape{PyArray_DIMS(array), PyArray_NDIM(array)};
    int const flags = PyArray_FLAGS(array) & (NPY_ARRAY_WRITEABLE | NPY_ARRAY_ALIGNED);
    return array_at(address, PyArray_DESCR(array), shape, PyArray_STRIDES(array), flags,
                    nb::borrow(value));
}

nb::tuple address_info(nb::handle value) {
    PyArrayObject *const array = to_array({"diomp.address_info", "array"}, value);
    ompx_addr_info_t info{};
    check(ompx_addr_info(PyArray_DATA(array), &info));
    return nb::make_tuple(info.rank, static_cast<int>(info.kind), info.offset, info.nbytes);
}

nb::tuple segment_info() {
    ompx_segment_info_t info{};
    check(ompx_segment_info(&info));
    return nb::make_tuple(info.nbytes, info.symmetric_used, info.local_used, info.largest_free,
                          info.resident, info.num_allocations);
}

void register_array(nb::handle value) {
    PyArrayObject *const array = to_contiguous({"diomp.register", "array"}, value);
    check(ompx_register(PyArray_DATA(array), bytes_of(array)));
}

void unregister_array(nb::handle value) {
    PyArrayObject *const array = to_array({"diomp.unregister", "array"}, value);
    check(ompx_unregister(PyArray_DATA(array)));
}

} // namespace

bool has_device_memory() { return g_has_device_memory; }

void bind_memory(nb::module_ &m) {
    nb::class_<block>(m, "Block", "An allocation of global memory; the base of its arrays.")
        .def_ro("nbytes", &block::nbytes, "Size in bytes.")
        .def_ro("is_freed", &block::is_freed, "Whether diomp.free has freed it.");
    nb::class_<tracked_block, block>(m, "TrackedBlock", "A block that records its end.");
    m.def("allocate", allocate, nb::arg("shape"), nb::arg("dtype"), nb::arg("kind"),
          nb::arg("fortran_order"), nb::arg("zero"), nb::arg("device") = host_device,
          nb::sig("def allocate(shape: int | tuple[int, ...], dtype: object, kind: int, "
                  "fortran_order: bool, zero: bool, device: int = -1) -> numpy.ndarray"),
          "An array in global memory, or the layout of one on a device.");
    m.def("free", free_array, nb::arg("array"),
          nb::sig("def free(array: numpy.ndarray | diomp.devices.DeviceArray) -> None"),
          "Frees the memory of an array of this package, or of the array that it is a view of. "
          "Collective for symmetric and asymmetric memory. No view of it may be used afterwards.");
    m.def("dropped", dropped,
          "For each collective allocation, in the order of allocation: whether no array of this "
          "rank refers to it any more.");
    m.def("free_marked", free_marked, nb::arg("marks"), "Frees the marked allocations.");
    m.def(
        "remote_view", remote_view, nb::arg("array"), nb::arg("rank"),
        nb::sig("def remote_view(array: numpy.ndarray, rank: int) -> numpy.ndarray | None"),
        "An array that is the memory of `rank` itself, for loads and stores; None if that rank is "
        "on another node.");
    m.def("address_info", address_info, nb::arg("array"),
          nb::sig("def address_info(array: numpy.ndarray) -> tuple[int, int, int, int]"),
          "Rank, kind, offset in its segment and size of the allocation.");
    m.def("segment_info", segment_info,
          nb::sig("def segment_info() -> tuple[int, int, int, int, int, int]"),
          "Sizes of this rank's segment.");
    m.def("register", register_array, nb::arg("array"),
          nb::sig("def register(array: numpy.ndarray) -> None"),
          "Makes the memory of an array accessible to all ranks.");
    m.def("unregister", unregister_array, nb::arg("array"),
          nb::sig("def unregister(array: numpy.ndarray) -> None"), "Ends the registration.");
}

} // namespace diomp::python
