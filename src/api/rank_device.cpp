// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The devices of this rank: libomptarget's names of its device numbers, the default device, and the
// calls that return the rank's devices.
#include "api/internal/omp_runtime.h"
#include "api/internal/state.h"
#include "base/log.h"
#include "diomp/target.h"
#include "offload/device_names.h"
#include "runtime/rank_devices.h"

#include <fmt/ranges.h>

#include <atomic>
#include <cstdlib>
#include <dlfcn.h>
#include <mutex>
#include <vector>

using namespace diomp;

namespace {

/// Set by libomptarget when it is loaded.
std::atomic<diomp_device_name_function> g_device_names{nullptr};

/// The choice among num_devices devices; images that are loaded later can add devices.
struct known_choice {
    std::mutex mutex;
    std::size_t num_devices = 0;
    std::vector<int> chosen;
};
/// Never destroyed: exit handlers may use it.
known_choice &known() {
    static auto *const only = new known_choice;
    return *only;
}

std::vector<runtime::openmp_device> all_devices() {
    std::vector<runtime::openmp_device> devices;
    diomp_device_name_function const names = g_device_names.load(std::memory_order_acquire);
    if (names == nullptr || runtime::offload_is_disabled()) {
        return devices;
    }
    const char *plugin = nullptr;
    std::int32_t plugin_device = 0;
    for (std::int32_t device = 0; names(device, &plugin, &plugin_device) != 0; ++device) {
        devices.push_back({plugin, plugin_device});
    }
    return devices;
}

result<std::vector<int>> devices_of_rank(runtime::runtime &running) {
    std::vector<runtime::openmp_device> const devices = all_devices();
    known_choice &now = known();
    std::lock_guard const guard(now.mutex);
    if (now.num_devices == devices.size()) {
        return now.chosen;
    }
    settings const &values = running.values();
    auto const localities = runtime::read_localities(running.connection().launcher());
    std::size_t const own = running.job().size == 1 ? 0 : running.job().local.index();
    auto chosen =
        runtime::choose_devices(values, localities, own, devices, runtime::query_vendors(values));
    DIOMP_TRY(chosen);
    now.chosen = chosen.take();
    now.num_devices = devices.size();
    if (!now.chosen.empty()) {
        log(log_level::info, "drives {} of {} devices: {} ({})", now.chosen.size(), devices.size(),
            fmt::join(now.chosen, ", "),
            devices[static_cast<std::size_t>(now.chosen.front())].plugin);
    }
    return now.chosen;
}

} // namespace

std::vector<int> diomp::api::driven_devices() {
    runtime_access const here("ompx_rank_device");
    runtime::runtime *const running = here.running();
    if (running == nullptr) {
        return {};
    }
    auto chosen = devices_of_rank(*running);
    return chosen ? chosen.take() : std::vector<int>();
}

bool diomp::api::is_remote_device(int device) {
    diomp_device_name_function const names = g_device_names.load(std::memory_order_acquire);
    const char *plugin = nullptr;
    std::int32_t plugin_device = 0;
    return names != nullptr && names(device, &plugin, &plugin_device) != 0 &&
           std::string_view(plugin) == DIOMP_REMOTE_PLUGIN;
}

int diomp::api::default_device() {
    static auto *const function =
        reinterpret_cast<int (*)()>(::dlsym(RTLD_DEFAULT, "omp_get_default_device"));
    return function == nullptr ? -1 : function();
}

void diomp::api::bind_devices() {
    runtime_access const here("ompx_init");
    runtime::runtime *const running = here.running();
    if (running == nullptr) {
        return;
    }
    auto const chosen = devices_of_rank(*running);
    if (!chosen) {
        fail_later("ompx_init", chosen.failure());
    }
    // The default is 0 without OMP_DEFAULT_DEVICE. If no other device is needed, do not initialise
    // the program's OpenMP runtime here.
    if (chosen.value().empty() || chosen.value().front() == 0 ||
        std::getenv("OMP_DEFAULT_DEVICE") != nullptr) {
        return;
    }
    if (auto *const set_default =
            reinterpret_cast<void (*)(int)>(::dlsym(RTLD_DEFAULT, "omp_set_default_device"));
        set_default != nullptr) {
        set_default(chosen.value().front());
    }
}

extern "C" {

OMPX_API_ void diomp_offload_devices(diomp_device_name_function names) noexcept;
void diomp_offload_devices(diomp_device_name_function names) noexcept {
    g_device_names.store(names, std::memory_order_release);
}

int ompx_num_rank_devices(void) noexcept {
    int num = 0;
    int const outcome = api::call(
        "ompx_num_rank_devices", DIOMP_SITE, [] { return std::string(); },
        [&](runtime::runtime &running, api::call_stats &) -> status {
            auto chosen = devices_of_rank(running);
            DIOMP_TRY(chosen);
            num = static_cast<int>(chosen.value().size());
            return {};
        });
    return outcome == OMPX_SUCCESS ? num : outcome;
}

int ompx_rank_device(int index) noexcept {
    int device = 0;
    int const outcome = api::call(
        "ompx_rank_device", DIOMP_SITE, [&] { return fmt::format("index={}", index); },
        [&](runtime::runtime &running, api::call_stats &) -> status {
            auto chosen = devices_of_rank(running);
            DIOMP_TRY(chosen);
            std::size_t const num = chosen.value().size();
            if (index < 0 || static_cast<std::size_t>(index) >= num) {
                return error(OMPX_ERR_ARG,
                             fmt::format("this rank drives {} device{}", num, num == 1 ? "" : "s"),
                             num == 0 ? "compile with clang and -fopenmp-targets=..., start with "
                                        "diomp-run, and look at OMP_TARGET_OFFLOAD"
                                      : "pass an index from 0 to ompx_num_rank_devices() - 1");
            }
            device = chosen.value()[static_cast<std::size_t>(index)];
            return {};
        });
    return outcome == OMPX_SUCCESS ? device : outcome;
}

int ompx_get_num_rank_devices(void) noexcept { return ompx_num_rank_devices(); }

int ompx_get_rank_device(int index) noexcept { return ompx_rank_device(index); }

} // extern "C"
