// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/path_selector.h"

#include "config/settings.h"
#include "messaging/engine.h"
#include "offload/device_segment.h"
#include "offload/internal/peer_segments.h"
#include "offload/internal/segment_memory.h"
#include "offload/internal/segment_table.h"
#include "offload/sides.h"
#include "transport/conduit.h"

#include <fmt/core.h>

namespace diomp::offload {

path_selector::path_selector(const segment_table &own, accelerators &devices,
                             messaging::engine &engine, messaging::call_service &calls,
                             device_path_set allowed, world_rank self)
    : own_(own), engine_(engine), allowed_(allowed), self_(self),
      peers_(std::make_unique<peer_segments>(own, devices, engine, calls)) {}

path_selector::~path_selector() = default;

result<selected_path> path_selector::select(world_rank rank, const remote_side &there,
                                            const device_ptr &here, transfer_extents bytes) {
    if (there.device_memory) {
        return select_for_peer(rank, *there.device_memory, here, bytes);
    }
    std::byte *const direct = there.location.direct;
    if (there.on == nullptr) { // between an own accelerator and host memory of any rank
        return direct != nullptr
                   ? selected_path{rma::path::device, here.on, direct, {}}
                   : selected_path{rma::path::bounce, nullptr, nullptr,
                                   location_for_network(rank, there.location, here, bytes)};
    }
    if (here.on == nullptr || here.on == there.on) {
        return selected_path{rma::path::device, there.on, direct, {}};
    }
    return has_peer_access(*here.on, *there.on)
               ? selected_path{rma::path::peer_device, here.on, direct, {}}
               : selected_path{};
}

result<selected_path> path_selector::select_for_peer(world_rank rank,
                                                     const remote_device_memory &there,
                                                     const device_ptr &here,
                                                     transfer_extents bytes) {
    if (there.offset && allows(allowed_, device_path_set::ipc) &&
        engine_.transport().direct_base(rank) != nullptr) {
        auto opened = peers_->open(rank, there.device, *there.offset, bytes.remote, here.on);
        if (opened) {
            return selected_path{rma::path::ipc, opened.value().by, opened.value().address, {}};
        }
        if (opened.failure().code() != OMPX_ERR_UNSUPPORTED) {
            return opened.take_failure();
        }
    }
    selected_path found;
    if (there.kind != transport::memory_kind::host) {
        memory::location of_owner;
        of_owner.remote_address = there.address;
        of_owner.in_segment = true;
        of_owner.kinds.remote = there.kind;
        found.network = location_for_network(rank, of_owner, here, bytes);
    }
    return found;
}

bool path_selector::has_peer_access(const accelerator &by, const accelerator &on) const {
    if (!allows(allowed_, device_path_set::peer) || by.backend != on.backend) {
        return false;
    }
    auto const access = by.backend->can_access(by.id, on.id);
    return access && access.value();
}

std::optional<memory::location> path_selector::location_for_network(world_rank rank,
                                                                    const memory::location &there,
                                                                    const device_ptr &here,
                                                                    transfer_extents bytes) const {
    transport::conduit const &transport = engine_.transport();
    memory::location between = there;
    between.kinds.local =
        here.on == nullptr ? transport::memory_kind::host : kind_of(here.on->made_by);
    auto const address = reinterpret_cast<std::uintptr_t>(here.address);
    bool const is_on_service = here.on != nullptr && here.on->made_by == vendor::service;
    if (is_on_service || !there.in_segment || transport.direct_base(rank) != nullptr ||
        !allows(allowed_, device_path_set::network) ||
        !transport.can_transfer(rank, {between.kinds.remote, there.remote_address, bytes.remote},
                                {between.kinds.local, address, bytes.local})) {
        return std::nullopt;
    }
    return between;
}

result<std::byte *> path_selector::address_for(world_rank owner, const remote_device_memory &there,
                                               std::size_t nbytes, const accelerator &by) {
    auto const no_access = [&] {
        return error(OMPX_ERR_UNSUPPORTED,
                     fmt::format("{} device {} of this rank cannot access device {} of rank {}",
                                 by.backend->name(), by.id.value(), there.device, owner.value()),
                     "see DIOMP_DEVICE_PATHS");
    };
    if (owner != self_) {
        if (!allows(allowed_, device_path_set::ipc)) {
            return no_access();
        }
        auto opened = peers_->open(owner, there.device, *there.offset, nbytes, &by);
        DIOMP_TRY(opened);
        return opened.value().by == &by ? result<std::byte *>(opened.value().address) : no_access();
    }
    device_segment const *const segment = own_.find(there.device);
    if (segment == nullptr || segment->memory() == nullptr) {
        return no_access();
    }
    accelerator const &on = segment->memory()->on();
    if (&on != &by && !has_peer_access(by, on)) {
        return no_access();
    }
    return segment->base() + *there.offset;
}

result<peer_view> path_selector::open_all(world_rank owner, int device, const accelerator &by) {
    return allows(allowed_, device_path_set::ipc)
               ? peers_->open_all(owner, device, by)
               : error(OMPX_ERR_UNSUPPORTED, "DIOMP_DEVICE_PATHS forbids it");
}

} // namespace diomp::offload
