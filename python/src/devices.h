// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Device memory as operands: arrays of diomp.devices, and objects of other packages that export
// their memory by DLPack or __cuda_array_interface__.
//
// A layout is a NumPy array whose address is in device memory. It carries shape, type and strides,
// and its base is a block with the device. Nothing loads its elements: programs see it only as the
// DeviceArray that it belongs to.
#pragma once

#include "array.h"

namespace diomp::python {

/// A device number of calls that means the host.
inline constexpr int host_device = -1;

/// Whether to_layout() accepts the object.
[[nodiscard]] bool has_memory(nb::handle value);
/// The NumPy array or layout of an argument; throws as to_array() does, and for exporters whose
/// memory is on a device that this rank does not drive.
[[nodiscard]] nb::object to_layout(const argument &given, nb::handle value);
/// OpenMP's number of the device that an array or layout lies on, or host_device.
[[nodiscard]] int device_of(PyArrayObject *array);
/// Whether this process has allocated device memory: arrays of unknown origin may then lie in it.
[[nodiscard]] bool has_device_memory();

} // namespace diomp::python
