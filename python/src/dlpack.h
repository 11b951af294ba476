// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The structures of DLPack (ABI of version 0.8), which packages exchange in capsules.
#pragma once

#include <cstdint>

namespace diomp::python::dlpack {

enum class device_type : std::int32_t {
    cpu = 1,
    cuda = 2,
    cuda_host = 3,
    rocm = 10,
    rocm_host = 11
};
enum class type_code : std::uint8_t {
    integer = 0,
    unsigned_integer = 1,
    real = 2,
    bfloat = 4,
    complex = 5,
    boolean = 6
};

struct device {
    device_type type;
    std::int32_t number;
};
struct data_type {
    type_code code;
    std::uint8_t bits;
    std::uint16_t lanes;
};
struct tensor {
    void *data;
    dlpack::device device;
    std::int32_t num_dims;
    data_type type;
    std::int64_t *shape;
    std::int64_t *strides; ///< in elements; null: C's order
    std::uint64_t byte_offset;
};
struct managed_tensor {
    dlpack::tensor tensor;
    void *context;
    void (*deleter)(managed_tensor *self); ///< may be null
};

inline constexpr const char *capsule_name = "dltensor";
inline constexpr const char *used_capsule_name = "used_dltensor";

} // namespace diomp::python::dlpack
