// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "devices.h"

#include "dlpack.h"

#include <array>
#include <cstdint>
#include <diomp/binding.hpp>
#include <memory>
#include <vector>

namespace diomp::python {

namespace {

/// Memory of another package, kept alive by `owner`, a capsule or the exporting object.
struct foreign_block : block {
    nb::object owner;
};

struct number_format {
    char kind; ///< dtype.kind of NumPy
    dlpack::type_code code;
};
constexpr number_format formats[] = {{'i', dlpack::type_code::integer},
                                     {'u', dlpack::type_code::unsigned_integer},
                                     {'f', dlpack::type_code::real},
                                     {'c', dlpack::type_code::complex},
                                     {'b', dlpack::type_code::boolean}};

enum class memory_vendor { none = 0, cuda = 1, hip = 2 };

ompx_device_memory memory_of(int device) {
    ompx_device_memory found{};
    check(ompx_device_memory_of(device, &found));
    return found;
}

/// The device of an address that another package has allocated or got from this one.
int find_device(const argument &given, nb::handle value, const void *address, memory_vendor vendor,
                int number) {
    int const known = ompx_device_of_address(address);
    if (known >= 0 || vendor == memory_vendor::none) {
        return known;
    }
    int const count = check(ompx_num_rank_devices());
    for (int i = 0; i < count; ++i) {
        int const device = check(ompx_rank_device(i));
        ompx_device_memory const at = memory_of(device);
        if (at.vendor == static_cast<int>(vendor) && (number < 0 || at.number == number)) {
            return device;
        }
    }
    fail(given, value, OMPX_ERR_ADDRESS, "lies on a device that this rank does not drive",
         "copy it to a device of diomp.rank_device, or load libomptarget before the import of "
         "diomp");
}

/// A layout at an address; `owner` keeps the memory.
nb::object make_layout(void *address, PyArray_Descr *descr, std::vector<npy_intp> &shape,
                       const npy_intp *strides, bool is_writable, int device, nb::object owner) {
    auto made = std::make_unique<foreign_block>();
    made->address = address;
    made->device = device;
    made->owner = std::move(owner);
    nb::object const base = nb::cast(made.release(), nb::rv_policy::take_ownership);
    PyArray_Dims const dims{shape.data(), static_cast<int>(shape.size())};
    return array_at(address, descr, dims, strides,
                    NPY_ARRAY_ALIGNED | (is_writable ? NPY_ARRAY_WRITEABLE : 0), base);
}

nb::object dtype_named(const std::string &text) {
    return nb::module_::import_("numpy").attr("dtype")(nb::str(text.c_str()));
}

/// NumPy's type of a tensor's elements; a null object if it has none.
nb::object dtype_of(const dlpack::data_type &type) {
    if (type.lanes == 1 && type.bits % 8 == 0) {
        if (type.code == dlpack::type_code::bfloat && type.bits == 16) {
            try {
                return dtype_named("bfloat16"); // registered by ml_dtypes
            } catch (const nb::python_error &) {
                return {};
            }
        }
        for (number_format const &each : formats) {
            if (each.code == type.code) {
                return dtype_named(each.kind + std::to_string(type.bits / 8));
            }
        }
    }
    return {};
}

nb::object from_dlpack(const argument &given, nb::handle value) {
    nb::object const capsule = value.attr("__dlpack__")();
    auto *const managed = static_cast<dlpack::managed_tensor *>(
        PyCapsule_GetPointer(capsule.ptr(), dlpack::capsule_name));
    if (managed == nullptr || PyCapsule_SetName(capsule.ptr(), dlpack::used_capsule_name) != 0) {
        throw nb::python_error();
    }
    // Its end is the end of the last layout.
    nb::capsule const owner(managed, [](void *tensor) noexcept {
        auto *const ended = static_cast<dlpack::managed_tensor *>(tensor);
        if (ended->deleter != nullptr) {
            ended->deleter(ended);
        }
    });
    dlpack::tensor const &tensor = managed->tensor;
    nb::object const dtype = dtype_of(tensor.type);
    if (!dtype.is_valid()) {
        fail(given, value, OMPX_ERR_ARG, "has elements of a type that NumPy does not have",
             "convert it to a type of NumPy");
    }
    auto const item_bytes = nb::cast<npy_intp>(dtype.attr("itemsize"));
    auto const num_dims = static_cast<std::size_t>(tensor.num_dims);
    std::vector<npy_intp> shape(tensor.shape, tensor.shape + num_dims);
    std::vector<npy_intp> strides;
    for (std::size_t i = 0; tensor.strides != nullptr && i < num_dims; ++i) {
        strides.push_back(tensor.strides[i] * item_bytes);
    }
    bool const is_cuda = tensor.device.type == dlpack::device_type::cuda;
    bool const is_hip = tensor.device.type == dlpack::device_type::rocm;
    if (!is_cuda && !is_hip && tensor.device.type != dlpack::device_type::cpu &&
        tensor.device.type != dlpack::device_type::cuda_host &&
        tensor.device.type != dlpack::device_type::rocm_host) {
        fail(given, value, OMPX_ERR_UNSUPPORTED,
             "lies on a device of DLPack's type " +
                 std::to_string(static_cast<int>(tensor.device.type)),
             "copy it to the host, or to a device of CUDA or ROCm");
    }
    void *const address = static_cast<char *>(tensor.data) + tensor.byte_offset;
    int const device = find_device(given, value, address,
                                   is_cuda ? memory_vendor::cuda
                                           : (is_hip ? memory_vendor::hip : memory_vendor::none),
                                   tensor.device.number);
    return make_layout(address, reinterpret_cast<PyArray_Descr *>(dtype.ptr()), shape,
                       strides.empty() ? nullptr : strides.data(), true, device, owner);
}

nb::object from_cuda_interface(const argument &given, nb::handle value) {
    auto const described = nb::cast<nb::dict>(value.attr("__cuda_array_interface__"));
    // A producer that names a stream may still be writing.
    if (described.contains("stream") && !described["stream"].is_none()) {
        fail(given, value, OMPX_ERR_UNSUPPORTED, "names a stream whose work may not be complete",
             "synchronise it and pass an object that exports DLPack or no stream");
    }
    if (described.contains("mask") && !described["mask"].is_none()) {
        fail(given, value, OMPX_ERR_UNSUPPORTED, "has masked elements", "pass an array without");
    }
    nb::object const dtype = nb::module_::import_("numpy").attr("dtype")(described["typestr"]);
    auto const shape_given = nb::cast<nb::tuple>(described["shape"]);
    std::vector<npy_intp> shape;
    for (nb::handle const extent : shape_given) {
        shape.push_back(nb::cast<npy_intp>(extent));
    }
    std::vector<npy_intp> strides;
    if (described.contains("strides") && !described["strides"].is_none()) {
        for (nb::handle const stride : nb::cast<nb::tuple>(described["strides"])) {
            strides.push_back(nb::cast<npy_intp>(stride));
        }
    }
    auto const data = nb::cast<nb::tuple>(described["data"]);
    auto *const address = reinterpret_cast<void *>(nb::cast<std::uintptr_t>(data[0]));
    int const device = find_device(given, value, address, memory_vendor::cuda, -1);
    return make_layout(address, reinterpret_cast<PyArray_Descr *>(dtype.ptr()), shape,
                       strides.empty() ? nullptr : strides.data(), !nb::cast<bool>(data[1]), device,
                       nb::borrow(value));
}

nb::handle device_array_type() {
    static nb::object *const type =
        new nb::object(nb::module_::import_("diomp.devices").attr("DeviceArray"));
    return *type;
}

bool is_device_array(nb::handle value) { return nb::isinstance(value, device_array_type()); }

/// Keeps a layout while another package uses its memory.
struct exported {
    dlpack::managed_tensor managed{};
    std::vector<std::int64_t> shape;
    std::vector<std::int64_t> strides;
    nb::object layout;
};

void delete_exported(dlpack::managed_tensor *managed) {
    nb::gil_scoped_acquire const acquired;
    std::unique_ptr<exported> const ended(static_cast<exported *>(managed->context));
}

void delete_unused_capsule(PyObject *capsule) {
    if (PyCapsule_IsValid(capsule, dlpack::capsule_name) != 0) {
        auto *const managed = static_cast<dlpack::managed_tensor *>(
            PyCapsule_GetPointer(capsule, dlpack::capsule_name));
        managed->deleter(managed);
    }
}

dlpack::device dlpack_device(int device) {
    ompx_device_memory const at = memory_of(device);
    switch (static_cast<memory_vendor>(at.vendor)) {
    case memory_vendor::cuda:
        return {dlpack::device_type::cuda, at.number};
    case memory_vendor::hip:
        return {dlpack::device_type::rocm, at.number};
    default:
        return {dlpack::device_type::cpu, 0};
    }
}

dlpack::data_type dlpack_type(const argument &given, nb::handle layout, PyArrayObject *array) {
    auto const bits = static_cast<std::uint8_t>(8 * PyArray_ITEMSIZE(array));
    if (type_of(array) == OMPX_BFLOAT16) {
        return {dlpack::type_code::bfloat, bits, 1};
    }
    for (number_format const &each : formats) {
        if (each.kind == PyArray_DESCR(array)->kind && PyArray_ISNOTSWAPPED(array)) {
            return {each.code, bits, 1};
        }
    }
    fail(given, layout, OMPX_ERR_UNSUPPORTED, "has a dtype that DLPack does not have",
         "view it as numbers");
}

nb::object to_dlpack(nb::handle layout) {
    argument const given{"diomp.DeviceArray.__dlpack__", "array"};
    PyArrayObject *const array = to_array(given, layout);
    auto made = std::make_unique<exported>();
    npy_intp const item_bytes = PyArray_ITEMSIZE(array);
    for (int i = 0; i < PyArray_NDIM(array); ++i) {
        made->shape.push_back(PyArray_DIM(array, i));
        made->strides.push_back(PyArray_STRIDE(array, i) / item_bytes);
        if (PyArray_STRIDE(array, i) % item_bytes != 0) {
            fail(given, layout, OMPX_ERR_UNSUPPORTED, "has strides that are no whole elements",
                 "export an array of whole elements");
        }
    }
    made->managed.tensor = {PyArray_DATA(array),
                            dlpack_device(device_of(array)),
                            PyArray_NDIM(array),
                            dlpack_type(given, layout, array),
                            made->shape.data(),
                            made->strides.data(),
                            0};
    made->managed.context = made.get();
    made->managed.deleter = delete_exported;
    made->layout = nb::borrow(layout);
    nb::object const capsule =
        nb::steal(PyCapsule_New(&made->managed, dlpack::capsule_name, delete_unused_capsule));
    if (!capsule.is_valid()) {
        throw nb::python_error();
    }
    (void)made.release(); // the capsule's or its consumer's
    return capsule;
}

nb::tuple export_device(nb::handle layout) {
    PyArrayObject *const array = to_array({"diomp.DeviceArray", "array"}, layout);
    dlpack::device const at = dlpack_device(device_of(array));
    return nb::make_tuple(static_cast<int>(at.type), at.number);
}

int layout_device(nb::handle layout) {
    return device_of(to_array({"diomp.DeviceArray", "array"}, layout));
}

} // namespace

bool has_memory(nb::handle value) {
    return is_array(value) || is_device_array(value) || nb::hasattr(value, "__dlpack__") ||
           nb::hasattr(value, "__cuda_array_interface__");
}

nb::object to_layout(const argument &given, nb::handle value) {
    if (is_array(value)) {
        return nb::borrow(value);
    }
    if (is_device_array(value)) {
        return value.attr("_layout");
    }
    if (nb::hasattr(value, "__dlpack__")) {
        return from_dlpack(given, value);
    }
    if (nb::hasattr(value, "__cuda_array_interface__")) {
        return from_cuda_interface(given, value);
    }
    (void)to_array(given, value); // reports it
    return nb::borrow(value);
}

int device_of(PyArrayObject *array) {
    block const *const from = block_of(array);
    if (from != nullptr) {
        return from->device;
    }
    return has_device_memory() ? ompx_device_of_address(PyArray_DATA(array)) : host_device;
}

void bind_devices(nb::module_ &m) {
    nb::class_<foreign_block, block>(m, "ForeignBlock", "Memory of another package.");
    m.def(
        "num_rank_devices", [] { return check(ompx_num_rank_devices()); },
        "Number of devices that this rank drives; 0 if libomptarget and a library with target "
        "regions are not loaded.");
    m.def(
        "rank_device", [](int index) { return check(ompx_rank_device(index)); },
        nb::arg("index") = 0, "OpenMP's number of a device of this rank.");
    m.def("to_dlpack", to_dlpack, nb::arg("layout"),
          nb::sig("def to_dlpack(layout: numpy.ndarray) -> object"), "A capsule of DLPack.");
    m.def("export_device", export_device, nb::arg("layout"),
          nb::sig("def export_device(layout: numpy.ndarray) -> tuple[int, int]"),
          "DLPack's type and number of the device.");
    m.def("layout_device", layout_device, nb::arg("layout"),
          nb::sig("def layout_device(layout: numpy.ndarray) -> int"),
          "OpenMP's number of the device.");
}

} // namespace diomp::python
