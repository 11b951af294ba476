// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Resolves the buffers of collectives on devices.
#include "device_coll/internal/device_calls.h"
#include "device_coll/internal/remote_calls.h"
#include "offload/device_segments.h"
#include "offload/offload.h"
#include "offload/translator.h"

#include <algorithm>

namespace diomp::device_coll {

using coll::request;

result<device_buffer_view> device_calls::find(const void *pointer, int device, std::size_t nbytes,
                                              buffer_role role) {
    device_buffer_view made;
    made.nbytes = nbytes;
    made.host = static_cast<std::byte *>(const_cast<void *>(pointer));
    if (nbytes == 0) {
        return made;
    }
    auto found = devices_.translator().locate_own(pointer, device, nbytes);
    DIOMP_TRY(found);
    if (role == buffer_role::destination) {
        DIOMP_TRY(found.value().check_writable());
    }
    made.location = found.value().at;
    made.remote_index = found.value().remote_index;
    made.host = made.needs_copy() ? nullptr : made.location.address;
    return made;
}

result<endpoint_views> device_calls::find_buffers(const group::group &members, const request &args,
                                                  std::size_t own_index, int device) {
    std::size_t const member = members.own(own_index);
    endpoint_views made;
    made.use = coll::use_of(args, {}, members.count(), member);
    auto src = find(args.src, device, made.use.src_bytes, buffer_role::source);
    DIOMP_TRY(src);
    made.src = src.take();
    auto dst = find(args.dst, device, made.use.dst_bytes, buffer_role::destination);
    DIOMP_TRY(dst);
    made.dst = dst.take();
    return made;
}

// On the fast path of collectives on host devices: no allocation, no lock.
result<std::span<const coll::endpoint_buffers>>
device_calls::find_loadable(const group::group &members, const request &args, int device,
                            std::span<coll::endpoint_buffers> into) {
    std::size_t const num = members.num_own();
    if (num > into.size()) {
        return std::span<const coll::endpoint_buffers>{};
    }
    auto const own = into.first(num);
    std::ranges::fill(own, coll::endpoint_buffers{args.dst, args.src, nullptr});
    bool const has_endpoints = !members.endpoints().empty();
    for (std::size_t own_index = 0; own_index < num; ++own_index) {
        std::size_t const member = members.own(own_index);
        int const on = has_endpoints ? members.endpoints()[member].device : device;
        auto const use = coll::use_of(args, own[own_index], members.count(), member);
        bool const lacks_one = (use.src_bytes > 0 && args.src == nullptr) ||
                               (use.dst_bytes > 0 && args.dst == nullptr);
        if (lacks_one) {
            return std::span<const coll::endpoint_buffers>{}; // the general path reports it
        }
        if (use.src_bytes > 0) {
            auto found = devices_.translator().locate_own(args.src, on, use.src_bytes);
            DIOMP_TRY(found);
            if (found.value().at.on != nullptr || found.value().remote_index) {
                return std::span<const coll::endpoint_buffers>{};
            }
            own[own_index].src = found.value().at.address;
        }
        if (use.dst_bytes > 0) {
            auto found = devices_.translator().locate_own(args.dst, on, use.dst_bytes);
            DIOMP_TRY(found);
            DIOMP_TRY(found.value().check_writable());
            if (found.value().at.on != nullptr || found.value().remote_index) {
                return std::span<const coll::endpoint_buffers>{};
            }
            own[own_index].dst = found.value().at.address;
        }
    }
    return std::span<const coll::endpoint_buffers>(own);
}

result<checked_call> device_calls::find_all_buffers(const group::group &members,
                                                    const request &args, int device) {
    checked_call call;
    call.args = args;
    // Null pointers and sizes are checked before the buffers are looked up by them.
    std::vector<coll::endpoint_buffers> const given(members.num_own(),
                                                    {args.dst, args.src, args.blocks});
    DIOMP_TRY(collectives_.check(members, args, given));
    for (std::size_t own_index = 0; own_index < given.size(); ++own_index) {
        int const on = members.endpoints().empty()
                           ? device
                           : members.endpoints()[members.own(own_index)].device;
        auto found = find_buffers(members, args, own_index, on);
        DIOMP_TRY(found);
        call.own.push_back(found.take());
        call.blocks.push_back(args.blocks);
        call.session_index = remote_->session_index_of(members, args, call.own.back(), on);
    }
    return call;
}

} // namespace diomp::device_coll
