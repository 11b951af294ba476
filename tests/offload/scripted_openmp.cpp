// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The functions of OpenMP that the runtime looks for, and what libomptarget hands over.
#include "offload/scripted_openmp.h"

#include "offload/variable_table.h"

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

extern "C" void diomp_offload_variables(const diomp_variable_table *table);

namespace {

template <typename... Arguments>
int driver(const char *name, Arguments... arguments) {
    return scripted::in_stand_in<int(Arguments...)>(name)(arguments...);
}

char *make_hip_global(int device, std::size_t nbytes) {
    int before = 0;
    void *made = nullptr;
    if (driver("hipGetDevice", &before) != 0 || driver("hipSetDevice", device) != 0) {
        return nullptr;
    }
    driver("hipMalloc", &made, nbytes);
    driver("hipSetDevice", before);
    return static_cast<char *>(made);
}

/// A global of a module: memory that is shared with no other process.
char *make_global(int device, std::size_t nbytes) {
    if (std::string(scripted::used().plugin) == "amdgpu") {
        return make_hip_global(device, nbytes);
    }
    void *context = nullptr;
    unsigned long long made = 0;
    if (driver("cuInit", 0U) != 0 || driver("cuDevicePrimaryCtxRetain", &context, device) != 0 ||
        driver("cuCtxPushCurrent_v2", context) != 0) {
        return nullptr;
    }
    driver("cuMemAlloc_v2", &made, nbytes);
    driver("cuCtxPopCurrent_v2", &context);
    return reinterpret_cast<char *>(made);
}

std::uint64_t count_declared() {
    std::lock_guard const guard(scripted::g_mutex);
    return scripted::g_num_declared;
}

void visit_declared(diomp_take_variable take, void *argument) {
    std::lock_guard const guard(scripted::g_mutex);
    for (auto const &[host, of] : scripted::g_variables) {
        take(argument, reinterpret_cast<const void *>(host), of.nbytes, of.name);
    }
}

std::int32_t load_images(std::int32_t device) {
    std::lock_guard const guard(scripted::g_mutex);
    if (device < 0 || device >= scripted::num_devices()) {
        return 0;
    }
    for (auto const &[host, of] : scripted::g_variables) {
        auto const [copy, is_new] = scripted::g_sections.try_emplace({device, host});
        if (is_new) {
            copy->second = {of.nbytes, make_global(device, of.nbytes)};
        }
    }
    return 1;
}

constexpr diomp_variable_table table{DIOMP_VARIABLE_TABLE_VERSION, count_declared, visit_declared,
                                     load_images};

__attribute__((constructor)) void hand_over() { diomp_offload_variables(&table); }

} // namespace
