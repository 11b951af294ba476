// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The function table for libomptarget.
#include "api/internal/omp_runtime.h"
#include "api/internal/state.h"
#include "api/internal/translation_epoch.h"
#include "base/llvm_versions.h"
#include "base/log.h"
#include "offload/device_allocator.h"
#include "offload/device_endpoints.h"
#include "offload/device_segments.h"
#include "offload/offload.h"
#include "offload/plan_table.h"
#include "offload/table.h"
#include "offload/variable_table.h"
#include "offload/variables.h"
#include "rma/device_copies.h"
#include "rma/rma.h"
#include "runtime/rank_devices.h"
#include "transport/arena.h"

#include <dlfcn.h>
#include <link.h>
#include <optional>
#include <sched.h>
#include <string_view>

using namespace diomp;

namespace {

/// The arena of this process, kept after the runtime has ended: memory in it never belongs to
/// libomptarget.
std::atomic<std::uintptr_t> g_arena_base{0};
std::atomic<std::size_t> g_arena_span{0};

/// Set by libomptarget when it is loaded.
std::atomic<const diomp_variable_table *> g_variables{nullptr};
std::atomic<const diomp_plan_table *> g_plans{nullptr};

/// The program's constructors have run, including those that register its images.
std::atomic<bool> g_has_images{false};

/// Value of g_active_calls while the runtime is closed to libomptarget.
constexpr int closed = -1;

/// Number of active calls of libomptarget into the runtime; `closed` while it rejects them. OpenMP
/// continues after the runtime has ended, on any thread.
std::atomic<int> g_active_calls{closed};

class active_call {
public:
    active_call() {
        int before = g_active_calls.load(std::memory_order_relaxed);
        while (before != closed && !g_active_calls.compare_exchange_weak(
                                       before, before + 1, std::memory_order_acquire)) {
        }
        is_inside_ = before != closed;
    }
    ~active_call() {
        if (is_inside_) {
            g_active_calls.fetch_sub(1, std::memory_order_release);
        }
    }
    active_call(const active_call &) = delete;
    active_call &operator=(const active_call &) = delete;

    /// Null if the runtime is closed to calls.
    [[nodiscard]] runtime::runtime *running() const {
        return is_inside_ ? api::g_runtime.load(std::memory_order_acquire) : nullptr;
    }

private:
    bool is_inside_;
};

void *allocate_for_libomptarget(const diomp_offload_request *request) {
    active_call const inside;
    auto *const running = inside.running();
    return running == nullptr ? nullptr : running->devices().allocator().allocate(*request);
}

int release_for_libomptarget(std::int32_t device, void *address) {
    bool const in_arena =
        reinterpret_cast<std::uintptr_t>(address) - g_arena_base.load(std::memory_order_relaxed) <
        g_arena_span.load(std::memory_order_relaxed);
    bool const is_ours = in_arena || offload::device_segments::was_segment_memory(address);
    active_call const inside;
    auto *const running = inside.running();
    if (!is_ours) {
        if (running != nullptr) {
            running->devices().allocator().before_release(address);
        }
        return 0;
    }
    if (running != nullptr && !running->devices().allocator().release(device, address)) {
        return 0; // libomptarget reports it
    }
    return 1;
}

int local_ranks_for_libomptarget() {
    return api::g_runtime.load(std::memory_order_acquire) == nullptr ? 0
                                                                     : api::g_job.num_local_ranks;
}

using offload::device_endpoints;

std::uint64_t start_region(const diomp_offload_request &of, device_endpoints::requests by_region) {
    active_call const inside;
    auto *const running = inside.running();
    return running == nullptr ? 0 : running->devices().endpoints().begin(of, by_region);
}

std::uint64_t prepare_region(const diomp_offload_request *of) {
    return start_region(*of, device_endpoints::requests::forbidden);
}

std::uint64_t begin_region(const diomp_offload_request *of) {
    return start_region(*of, device_endpoints::requests::allowed);
}

void finish_region(std::int32_t device) {
    std::optional<offload::region_error> failed;
    {
        active_call const inside;
        if (auto *const running = inside.running(); running != nullptr) {
            failed = running->devices().endpoints().take_error(device);
        }
    }
    if (failed) {
        api::fail(failed->function, failed->arguments, failed->why);
    }
}

void end_region(std::int32_t device) {
    status ended;
    {
        active_call const inside;
        if (auto *const running = inside.running(); running != nullptr) {
            ended = running->devices().endpoints().end(device);
        }
    }
    if (!ended) {
        api::fail("target region", fmt::format("device={}", device), ended.failure());
    }
    finish_region(device);
}

constexpr diomp_offload_table table{DIOMP_OFFLOAD_TABLE_VERSION,
                                    allocate_for_libomptarget,
                                    release_for_libomptarget,
                                    local_ranks_for_libomptarget,
                                    prepare_region,
                                    finish_region,
                                    begin_region,
                                    end_region};

int note_libomptarget(dl_phdr_info *info, std::size_t /*nbytes*/, void *is_found) {
    std::string_view const path = info->dlpi_name;
    if (path.substr(path.rfind('/') + 1).starts_with("libomptarget.so")) {
        *static_cast<bool *>(is_found) = true;
    }
    return 0;
}

/// libomptarget of whichever version is loaded; null if none is. dlopen alone would look for the
/// files of all versions in all folders where none is.
void *loaded_libomptarget() {
    bool is_any_loaded = false;
    ::dl_iterate_phdr(note_libomptarget, &is_any_loaded);
    if (!is_any_loaded) {
        return nullptr;
    }
    for (llvm_version const &each : llvm_versions) {
        if (void *const library = ::dlopen(each.libomptarget, RTLD_NOLOAD | RTLD_LAZY)) {
            return library;
        }
    }
    return nullptr;
}

/// A function of libomptarget, if it is loaded: libomp's functions of the same names look
/// libomptarget's up in every call.
template <typename Function>
Function *openmp_function(void *library, const char *name) {
    void *const found = library == nullptr ? nullptr : ::dlsym(library, name);
    return reinterpret_cast<Function *>(found == nullptr ? ::dlsym(RTLD_DEFAULT, name) : found);
}

} // namespace

void diomp::api::publish_devices(runtime::runtime &running, offload::remote_memory *remote) {
    g_arena_base.store(running.connection().arena().base());
    g_arena_span.store(running.connection().arena().span_bytes());
    static void *const library = loaded_libomptarget();
    running.devices().attach(
        {
            openmp_function<int()>(library, "omp_get_num_devices"),
            openmp_function<void *(const void *, int)>(library, "omp_get_mapped_ptr"),
            openmp_function<void *(std::size_t, int)>(library, "omp_target_alloc"),
            openmp_function<void(void *, int)>(library, "omp_target_free"),
            api::driven_devices,
            [] { return g_variables.load(std::memory_order_acquire); },
            [] { return g_plans.load(std::memory_order_acquire); },
            api::is_remote_device,
            remote,
            runtime::offload_is_disabled(),
        },
        api::g_epoch);
    invalidate_translations();
    if (g_has_images.load(std::memory_order_acquire)) {
        running.devices().variables().open();
    }
    g_active_calls.store(0, std::memory_order_release);
}

const diomp_offload_table *diomp::api::offload_table() { return &table; }

void diomp::api::on_images_registered() {
    g_has_images.store(true, std::memory_order_release);
    active_call const inside;
    if (auto *const running = inside.running(); running != nullptr) {
        running->devices().variables().open();
    }
}

void diomp::api::close_devices() {
    invalidate_translations();
    int active = 0;
    while (!g_active_calls.compare_exchange_weak(active, closed, std::memory_order_acquire)) {
        if (active == closed) {
            return; // closed already, by an earlier attempt to end that failed
        }
        active = 0;
        ::sched_yield();
    }
}

extern "C" {

[[gnu::visibility("default")]] const diomp_offload_table *
diomp_offload_table_of_runtime(void) noexcept __asm__("diomp_offload_table");
const diomp_offload_table *diomp_offload_table_of_runtime(void) noexcept { return &table; }

[[gnu::visibility("default")]] void diomp_offload_plans(const diomp_plan_table *known) noexcept;
void diomp_offload_plans(const diomp_plan_table *known) noexcept {
    if (known->version >= DIOMP_PLAN_TABLE_VERSION) {
        g_plans.store(known, std::memory_order_release);
    }
}

[[gnu::visibility("default")]] void
diomp_offload_variables(const diomp_variable_table *known) noexcept;
void diomp_offload_variables(const diomp_variable_table *known) noexcept {
    if (known == nullptr) {
        active_call const inside;
        if (auto *const running = inside.running(); running != nullptr) {
            running->devices().variables().close();
            // Those of the copies that have been accepted.
            if (status const copied = running->transfers().device_copies().wait(); !copied) {
                log(log_level::warn, "the end of the devices: {}", copied.failure().message());
            }
        }
        g_variables.store(nullptr, std::memory_order_release);
    } else if (known->version >= DIOMP_VARIABLE_TABLE_VERSION) {
        g_variables.store(known, std::memory_order_release);
    }
}

} // extern "C"
