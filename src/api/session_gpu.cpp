// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The GPU of a session: what libomptarget and the client of the session need of the runtime.
#include "api/internal/session.h"
#include "api/internal/state.h"
#include "api/internal/translation_epoch.h"
#include "offload/device_allocator.h"
#include "offload/device_segment.h"
#include "offload/device_segments.h"
#include "offload/offload.h"
#include "offload/openmp.h"
#include "offload/table.h"

#include <vector>

namespace {

using diomp::api::g_session;

/// The session's GPU is the only device of its process, and OpenMP maps nothing there.
diomp::offload::openmp openmp_of_gpu() {
    diomp::offload::openmp functions;
    functions.num_devices = [] { return 1; };
    functions.driven_devices = [] { return std::vector<int>{0}; };
    return functions;
}

} // namespace

void diomp::api::use_gpu_of_session(runtime::runtime &running) {
    running.devices().attach(openmp_of_gpu(), g_epoch);
}

extern "C" {

[[gnu::visibility("default")]] uint64_t diomp_session_segment(uint64_t nbytes,
                                                              uint64_t preferred) noexcept;
uint64_t diomp_session_segment(uint64_t nbytes, uint64_t preferred) noexcept {
    diomp::runtime::runtime *const running = diomp::api::g_runtime.load();
    if (running == nullptr || g_session->plugin == nullptr) {
        return 0;
    }
    diomp::offload::device_segment const *const segment =
        running->devices().allocator().lend_segment(
            {g_session->plugin, g_session->plugin_device, 0, 0, nullptr}, preferred);
    return segment == nullptr || segment->size_bytes() != nbytes
               ? 0
               : reinterpret_cast<std::uintptr_t>(segment->base());
}

[[gnu::visibility("default")]] const diomp_offload_table *diomp_session_regions(void) noexcept;
const diomp_offload_table *diomp_session_regions(void) noexcept {
    static diomp_offload_table const regions = [] {
        diomp_offload_table made = *diomp::api::offload_table();
        made.allocate = [](const diomp_offload_request *) -> void * { return nullptr; };
        made.release = [](std::int32_t, void *address) {
            return diomp::offload::device_segments::was_segment_memory(address) ? 1 : 0;
        };
        return made;
    }();
    return &regions;
}

} // extern "C"
