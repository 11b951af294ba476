// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The functions of OpenMP that the runtime looks for.
#include "offload/scripted_openmp.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED int omp_get_num_devices() { return scripted::num_devices(); }

EXPORTED void *omp_get_mapped_ptr(const void *pointer, int device) {
    std::lock_guard const guard(scripted::g_mutex);
    auto const wanted = reinterpret_cast<std::uintptr_t>(pointer);
    for (auto const &[key, section] : scripted::g_sections) {
        if (key.first == device && wanted - key.second < section.nbytes) {
            return section.device + (wanted - key.second);
        }
    }
    return nullptr;
}

EXPORTED void *omp_target_alloc(std::size_t nbytes, int device) {
    return scripted::allocate(nbytes, device, nullptr);
}

EXPORTED void omp_target_free(void *address, int device) {
    if (address != nullptr) {
        diomp_offload_table()->release(device, address);
    }
}
