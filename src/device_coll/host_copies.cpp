// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device_coll/internal/host_copies.h"

#include "device_coll/internal/checked_call.h"
#include "group/group.h"
#include "offload/device_segments.h"
#include "offload/offload.h"
#include "offload/remote_memory.h"
#include "offload/stream_copies.h"

#include <cstdint>
#include <vector>

namespace diomp::device_coll {
namespace {

/// Whether [inner, inner + inner_bytes) lies in [outer, outer + outer_bytes).
bool lies_in(const device_buffer_view &inner, const device_buffer_view &outer) {
    auto const offset = reinterpret_cast<std::uintptr_t>(inner.location.address) -
                        reinterpret_cast<std::uintptr_t>(outer.location.address);
    return inner.location.address != nullptr && outer.location.address != nullptr &&
           offset < outer.nbytes && inner.nbytes <= outer.nbytes - offset;
}

/// Copies between a buffer on a device and its host copy.
status copy(offload::devices &devices, const device_buffer_view &of, rma::direction dir) {
    if (of.remote_index) {
        rma::run const whole{0, 0, of.nbytes};
        return devices.segments().remote()->move(
            dir, reinterpret_cast<std::uintptr_t>(of.location.address), of.host, {&whole, 1},
            nullptr);
    }
    return dir == rma::direction::get
               ? devices.copies().copy(*of.location.on, of.host, of.location.address, of.nbytes)
               : devices.copies().copy(*of.location.on, of.location.address, of.host, of.nbytes);
}

} // namespace

status host_copies::prepare(device_buffer_view &of, bool is_read) {
    if (!of.needs_copy() || of.host != nullptr) {
        return {};
    }
    of.copy = std::make_unique_for_overwrite<std::byte[]>(of.nbytes);
    of.host = of.copy.get();
    return is_read ? copy(devices_, of, rma::direction::get) : status{};
}

status host_copies::prepare(checked_call &call) {
    for (endpoint_views &each : call.own) {
        // In place: one host copy holds both buffers.
        bool const src_in_dst = lies_in(each.src, each.dst);
        bool const dst_in_src = !src_in_dst && lies_in(each.dst, each.src);
        if (dst_in_src) {
            DIOMP_TRY(prepare(each.src, true));
            each.dst.host = each.src.host + (each.dst.location.address - each.src.location.address);
        }
        DIOMP_TRY(prepare(each.dst, each.use.reads_dst || src_in_dst));
        if (src_in_dst) {
            each.src.host = each.dst.host + (each.src.location.address - each.dst.location.address);
        }
        DIOMP_TRY(prepare(each.src, true));
    }
    return {};
}

status host_copies::run(group::group &members, const checked_call &call) {
    std::vector<coll::endpoint_buffers> own;
    own.reserve(call.own.size());
    for (std::size_t i = 0; i < call.own.size(); ++i) {
        own.push_back({call.own[i].dst.host, call.own[i].src.host, call.blocks[i]});
    }
    DIOMP_TRY(collectives_.run_locked(members, call.args, own, true));
    return copy_results(call);
}

status host_copies::copy_results(const checked_call &call) {
    for (const endpoint_views &each : call.own) {
        bool const is_source = call.args.what == sync::operation::bcast && each.use.reads_dst;
        if (each.dst.nbytes > 0 && each.dst.needs_copy() && !is_source) {
            DIOMP_TRY(copy(devices_, each.dst, rma::direction::put));
        }
    }
    return {};
}

} // namespace diomp::device_coll
