// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/gasnet/device_memory.h"

#include "base/log.h"
#include "base/sizes.h"
#include "transport/gasnet/rdma.h"

#include <gasnet_mk.h>

namespace diomp::transport::gasnet {
namespace {

/// The kinds of memory that GASNet was built with.
std::span<const memory_kind> supported_kinds() {
    static auto const *const kinds = new std::vector<memory_kind>([] { // used during exit
        std::vector<memory_kind> found;
#if GASNET_HAVE_MK_CLASS_CUDA_UVA
        found.push_back(memory_kind::cuda);
#endif
#if GASNET_HAVE_MK_CLASS_HIP
        found.push_back(memory_kind::hip);
#endif
        return found;
    }());
    return *kinds;
}

const char *name_of(memory_kind kind) { return kind == memory_kind::cuda ? "CUDA" : "HIP"; }

gex_MK_Create_args_t arguments_for(const device_range &wanted) {
    gex_MK_Create_args_t arguments{};
    if (wanted.range.kind == memory_kind::cuda) {
        arguments.gex_class = GEX_MK_CLASS_CUDA_UVA;
        arguments.gex_args.gex_class_cuda_uva.gex_CUdevice = wanted.device;
    } else {
        arguments.gex_class = GEX_MK_CLASS_HIP;
        arguments.gex_args.gex_class_hip.gex_hipDevice = wanted.device;
    }
    return arguments;
}

} // namespace

status device_memory::bind(const device_range &wanted) {
    gex_MK_Create_args_t const arguments = arguments_for(wanted);
    gex_MK_t kind{};
    DIOMP_TRY(launch::gasnet::to_status("gex_MK_Create",
                                        gex_MK_Create(&kind, job_.handle, &arguments, 0)));
    gex_EP_t endpoint{};
    DIOMP_TRY(launch::gasnet::to_status(
        "gex_EP_Create", gex_EP_Create(&endpoint, job_.handle, GEX_EP_CAPABILITY_RMA, 0)));
    gex_Segment_t segment{};
    DIOMP_TRY(launch::gasnet::to_status(
        "gex_Segment_Create",
        gex_Segment_Create(&segment, job_.handle, reinterpret_cast<void *>(wanted.range.address),
                           wanted.range.nbytes, kind, 0)));
    DIOMP_TRY(
        launch::gasnet::to_status("gex_EP_BindSegment", gex_EP_BindSegment(endpoint, segment, 0)));
    endpoints_.push_back(endpoint);
    bound_.push_back({wanted.range, gex_EP_QueryIndex(endpoint)});
    return {};
}

result<std::unique_ptr<device_memory>>
device_memory::create(const launch::gasnet::gasnet_client &job, const conduit_options &options) {
    std::unique_ptr<device_memory> made;
    if (supported_kinds().empty()) {
        return made;
    }
    made.reset(new device_memory(job));
    // A transfer that the target's processor serves would load and store device memory there.
    made->is_wanted_ =
        options.device_memory == "on" || (options.device_memory == "auto" && has_one_sided_rdma());
    if (made->is_wanted_ && options.make_device_ranges) {
        for (device_range const &each : options.make_device_ranges(supported_kinds())) {
            const char *const vendor = name_of(each.range.kind);
            if (status const bound = made->bind(each); !bound) {
                log(log_level::warn,
                    "transfers between memory of {} device {} and other ranks are staged in host "
                    "memory: {} [remedy: DIOMP_NETWORK_DEVICE_MEMORY=off turns this off]",
                    vendor, each.device, bound.failure().message());
                continue;
            }
            log(log_level::info, "GASNet-EX transfers {} of {} device {} directly",
                format_size(each.range.nbytes), vendor, each.device);
        }
    }
    // Collective, also without any endpoint.
    DIOMP_TRY(launch::gasnet::to_status(
        "gex_EP_PublishBoundSegment",
        gex_EP_PublishBoundSegment(job.team, made->endpoints_.data(), made->endpoints_.size(), 0)));
    return made;
}

std::optional<gex_TM_t> device_memory::endpoint_pair(const peer &to, const memory_range &remote,
                                                     const memory_range &local) const {
    bound_range const *const there = is_wanted_ ? find_enclosing(to.bound(), remote) : nullptr;
    if (there == nullptr) {
        return std::nullopt;
    }
    // Local host memory need not be bound.
    if (local.kind == memory_kind::host) {
        return gex_TM_Pair(job_.endpoint, there->endpoint);
    }
    bound_range const *const here = find_enclosing(bound_, local);
    if (here == nullptr) {
        return std::nullopt;
    }
    return gex_TM_Pair(endpoints_[static_cast<std::size_t>(here - bound_.data())], there->endpoint);
}

} // namespace diomp::transport::gasnet
