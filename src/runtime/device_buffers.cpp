// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where the buffers of a collective on devices are.
#include "runtime/device_collectives.h"

#include <algorithm>

namespace diomp::runtime {

using collective::request;

result<device_collectives::view> device_collectives::find(const void *pointer, int device,
                                                          std::size_t nbytes) {
    view made;
    made.nbytes = nbytes;
    made.here = static_cast<std::byte *>(const_cast<void *>(pointer));
    if (nbytes == 0) {
        return made;
    }
    auto found = devices_.find_own(pointer, device, nbytes);
    DIOMP_TRY(found);
    made.there = found.value();
    made.here = made.there.on == nullptr ? made.there.address : nullptr;
    return made;
}

result<device_collectives::views> device_collectives::find_buffers(const group::group &members,
                                                                   const request &asked,
                                                                   std::size_t place, int device) {
    std::size_t const member = members.own(place);
    views made;
    made.use = collective::use_of(asked, {}, members.count(), member);
    auto src = find(asked.src, device, made.use.src_bytes);
    DIOMP_TRY(src);
    made.src = src.take();
    auto dst = find(asked.dst, device, made.use.dst_bytes);
    DIOMP_TRY(dst);
    made.dst = dst.take();
    return made;
}

// What collectives of host devices spend beside the collective itself: no allocation, no lock.
result<std::span<const collective::endpoint_buffers>>
device_collectives::find_loadable(const group::group &members, const request &asked, int device,
                                  std::span<collective::endpoint_buffers> into) {
    std::size_t const num = members.num_own();
    if (num > into.size()) {
        return std::span<const collective::endpoint_buffers>{};
    }
    auto const own = into.first(num);
    std::ranges::fill(own, collective::endpoint_buffers{asked.dst, asked.src, nullptr});
    bool const has_endpoints = !members.endpoints().empty();
    for (std::size_t place = 0; place < num; ++place) {
        std::size_t const member = members.own(place);
        int const on = has_endpoints ? members.endpoints()[member].device : device;
        auto const use = collective::use_of(asked, own[place], members.count(), member);
        bool const lacks_one = (use.src_bytes > 0 && asked.src == nullptr) ||
                               (use.dst_bytes > 0 && asked.dst == nullptr);
        if (lacks_one) {
            return std::span<const collective::endpoint_buffers>{}; // reported on the other way
        }
        if (use.src_bytes > 0) {
            auto found = devices_.find_own(asked.src, on, use.src_bytes);
            DIOMP_TRY(found);
            if (found.value().on != nullptr) {
                return std::span<const collective::endpoint_buffers>{};
            }
            own[place].src = found.value().address;
        }
        if (use.dst_bytes > 0) {
            auto found = devices_.find_own(asked.dst, on, use.dst_bytes);
            DIOMP_TRY(found);
            if (found.value().on != nullptr) {
                return std::span<const collective::endpoint_buffers>{};
            }
            own[place].dst = found.value().address;
        }
    }
    return std::span<const collective::endpoint_buffers>(own);
}

result<device_collectives::whole_call>
device_collectives::find_all(const group::group &members, const request &asked, int device) {
    whole_call call;
    call.asked = asked;
    // Null pointers and sizes first: what is found afterwards depends on them.
    std::vector<collective::endpoint_buffers> const given(members.num_own(),
                                                          {asked.dst, asked.src, asked.blocks});
    DIOMP_TRY(collectives_.check(members, asked, given));
    for (std::size_t place = 0; place < given.size(); ++place) {
        int const on =
            members.endpoints().empty() ? device : members.endpoints()[members.own(place)].device;
        auto found = find_buffers(members, asked, place, on);
        DIOMP_TRY(found);
        call.own.push_back(found.take());
        call.blocks.push_back(asked.blocks);
    }
    return call;
}

status device_collectives::load(view &of, bool is_read) {
    if (of.there.on == nullptr || of.here != nullptr) {
        return {};
    }
    of.copy = std::make_unique_for_overwrite<std::byte[]>(of.nbytes);
    of.here = of.copy.get();
    return is_read ? devices_.copy_own(of.there, of.here, of.nbytes, false) : status{};
}

} // namespace diomp::runtime
