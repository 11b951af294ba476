// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/early_devices.h"

#include "base/log.h"
#include "runtime/rank_devices.h"

#include <algorithm>

namespace diomp::runtime {
namespace {

/// Of these kinds, in the order in which libomptarget has its plugins.
struct visible_devices {
    std::vector<const offload::accelerator *> all;
    std::vector<openmp_device> names; ///< of the same
};
visible_devices find_devices(offload::accelerators &in,
                             std::span<const conduit::memory_kind> kinds) {
    visible_devices found;
    for (offload::vendor const each : {offload::vendor::hip, offload::vendor::cuda}) {
        if (std::ranges::find(kinds, kind_of(each)) == kinds.end()) {
            continue;
        }
        for (offload::accelerator const &device : in.all_of(each)) {
            found.all.push_back(&device);
            found.names.push_back(
                {each == offload::vendor::cuda ? "cuda" : "amdgpu", device.id.value()});
        }
    }
    return found;
}

void warn(const std::string &what, const error &why) {
    log(log_level::warn,
        "{}: transfers between it and other ranks go by way of host memory: {} [remedy: {}]", what,
        why.message(),
        why.remedy().empty() ? "set DIOMP_DEVICE_SEGMENT_SIZE to what the device has room for, or "
                               "DIOMP_NETWORK_DEVICE_MEMORY=off"
                             : why.remedy());
}

} // namespace

conduit::device_range_maker make_early_segments(const settings &values, launch::launcher &launcher,
                                                offload::early_segments &into) {
    return [&](std::span<const conduit::memory_kind> kinds) {
        std::vector<conduit::device_range> ranges;
        if (offload_is_disabled()) {
            return ranges;
        }
        visible_devices const visible = find_devices(into.devices(), kinds);
        if (visible.all.empty()) {
            return ranges;
        }
        launch::job_info const &job = launcher.info();
        std::size_t const own = job.size == 1 ? 0 : job.local.index();
        auto const driven =
            choose_devices(values, learn_places(launcher), own, visible.names, ask_vendors(values));
        if (!driven) {
            warn("the network does not know the devices of this rank", driven.failure());
            return ranges;
        }
        for (int const number : driven.value()) {
            auto const index = static_cast<std::size_t>(number);
            auto made =
                into.make(*visible.all[index], values.device_segment_size_bytes, job.local_size);
            if (made) {
                ranges.push_back(made.value());
            } else {
                warn(fmt::format("the network does not know {} device {}",
                                 visible.names[index].plugin, visible.names[index].plugin_device),
                     made.failure());
            }
        }
        return ranges;
    };
}

} // namespace diomp::runtime
