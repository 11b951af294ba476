// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/internal/preregistered_devices.h"

#include "base/log.h"
#include "offload/preregistered_segments.h"
#include "runtime/rank_devices.h"

#include <algorithm>

namespace diomp::runtime {
namespace {

/// The devices of given kinds, in the order of libomptarget's plugins.
struct visible_devices {
    std::vector<const offload::accelerator *> all;
    std::vector<openmp_device> names; ///< [index in all]
};
visible_devices find_devices(offload::accelerators &in,
                             std::span<const transport::memory_kind> kinds) {
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
        "{}: its transfers with other ranks go through host memory: {} [remedy: {}]", what,
        why.message(),
        why.remedy().empty()
            ? "set DIOMP_DEVICE_SEGMENT_SIZE to less than the device's free memory, "
              "or DIOMP_NETWORK_DEVICE_MEMORY=off"
            : why.remedy());
}

} // namespace

transport::device_range_maker make_preregistered_segments(const settings &values,
                                                          launch::launcher &launcher,
                                                          offload::preregistered_segments &into) {
    return [&](std::span<const transport::memory_kind> kinds) {
        std::vector<transport::device_range> ranges;
        if (offload_is_disabled()) {
            return ranges;
        }
        visible_devices const visible = find_devices(into.devices(), kinds);
        if (visible.all.empty()) {
            return ranges;
        }
        launch::job_info const &job = launcher.info();
        std::size_t const own = job.size == 1 ? 0 : job.local.index();
        auto const driven = choose_devices(values, read_localities(launcher), own, visible.names,
                                           query_vendors(values));
        if (!driven) {
            warn("the devices of this rank are not registered with the network", driven.failure());
            return ranges;
        }
        for (int const number : driven.value()) {
            auto const index = static_cast<std::size_t>(number);
            auto made =
                into.make(*visible.all[index], values.offload.segment_size_bytes, job.local_size);
            if (made) {
                ranges.push_back(made.value());
            } else {
                warn(fmt::format("{} device {} is not registered with the network",
                                 visible.names[index].plugin, visible.names[index].plugin_device),
                     made.failure());
            }
        }
        return ranges;
    };
}

} // namespace diomp::runtime
