// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/internal/peer_segments.h"

#include "base/log.h"
#include "messaging/call.h"
#include "offload/device_segment.h"
#include "offload/internal/segment_memory.h"
#include "transport/fd_exchange.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <unistd.h>

namespace diomp::offload {
namespace {

constexpr int delivery_timeout_ms = 10000;

} // namespace

struct peer_segments::share_request {
    messaging::request_header header;
    std::int32_t device = 0;
    std::uint32_t num_known = 0;
    char socket[48] = {}; ///< socket that receives the extents
};

struct peer_segments::share_reply {
    std::uint64_t reserved_bytes = 0;
    device::device_uuid uuid{};
    vendor made_by = vendor::none;
    std::uint32_t num_extents = 0;
    std::int32_t failure = 0;
};

/// Describes one extent in a delivery. Descriptors follow in the order of the extents with has_fd.
struct peer_segments::extent_header {
    std::uint64_t offset = 0;
    std::uint64_t nbytes = 0;
    std::array<std::byte, 64> token{};
    std::uint32_t has_fd = 0;
    std::uint32_t unused = 0;
};

peer_segments::peer_segments(const segment_table &own, accelerators &devices,
                             messaging::engine &engine, messaging::call_service &calls)
    : own_(own), accelerators_(devices), calls_(calls),
      share_handler_(engine.add_handler(
          [this](const transport::message &incoming) { on_share_request(incoming); })) {}

bool peer_segments::covers(const entry &of, std::uint64_t offset, std::size_t nbytes) {
    std::uint64_t const end = offset + nbytes;
    while (offset < end) {
        auto const around = std::ranges::find_if(
            of.extents, [&](const extent &each) { return offset - each.offset < each.nbytes; });
        if (around == of.extents.end()) {
            return false;
        }
        offset = around->offset + around->nbytes;
    }
    return true;
}

result<peer_segments::opened> peer_segments::open(world_rank owner, int device,
                                                  std::uint64_t offset, std::size_t nbytes,
                                                  const accelerator *local) {
    std::lock_guard const guard(mutex_);
    entry &known = entries_[{owner.value(), device, local}];
    while (!known.unreachable && (known.memory == nullptr || !covers(known, offset, nbytes))) {
        std::size_t const num_known = known.extents.size();
        auto more = request_share(owner, device, num_known);
        DIOMP_TRY(more);
        if (status const mapped = map_extents(known, more.value(), local); !mapped) {
            known.unreachable = true;
            log(log_level::info, "no device IPC with rank {} on its device {}: {}", owner.value(),
                device, mapped.failure().message());
        } else if (known.extents.size() == num_known) {
            return error(OMPX_ERR_RANGE,
                         fmt::format("rank {} has no memory at offset {} of device {}",
                                     owner.value(), offset, device));
        }
    }
    if (known.unreachable) {
        return error(OMPX_ERR_UNSUPPORTED, "no device of this process can access the memory");
    }
    return opened{known.memory->base() + offset, known.by};
}

result<peer_segments::view> peer_segments::open_all(world_rank owner, int device,
                                                    const accelerator &by) {
    std::lock_guard const guard(mutex_);
    entry &known = entries_[{owner.value(), device, &by}];
    for (bool has_more = !known.unreachable; has_more;) {
        std::size_t const num_known = known.extents.size();
        auto more = request_share(owner, device, num_known);
        DIOMP_TRY(more);
        if (status mapped = map_extents(known, more.value(), &by); !mapped) {
            known.unreachable = true;
            return mapped.take_failure();
        }
        has_more = known.extents.size() > num_known;
    }
    if (known.unreachable || known.by != &by) {
        return error(OMPX_ERR_UNSUPPORTED, "the device cannot access the memory");
    }
    return view{known.memory->base(), known.extents};
}

/// Chooses a device that can access the owner's memory: the local side's device, so that one copy
/// suffices, or, if the local side is host memory, the owner's.
const accelerator *peer_segments::choose(const shared_segment &of, const accelerator *local) {
    auto const *const same = accelerators_.find(of.made_by, of.uuid);
    if (local == nullptr || local == same) {
        return same;
    }
    if (same == nullptr || local->made_by != of.made_by) {
        return nullptr;
    }
    auto const reaches = local->backend->can_access(local->id, same->id);
    return reaches && reaches.value() ? local : nullptr;
}

status peer_segments::map_extents(entry &of, const shared_segment &more, const accelerator *local) {
    if (of.memory == nullptr) {
        of.by = choose(more, local);
        if (of.by == nullptr) {
            return error(OMPX_ERR_UNSUPPORTED, "no device of this process can access that device");
        }
        auto memory = of.by->backend->open_shared(of.by->id, more.handle);
        DIOMP_TRY(memory);
        of.memory = memory.take();
    } else {
        DIOMP_TRY(of.memory->map_more(more.handle));
    }
    for (device::shared_extent const &each : more.handle.extents) {
        of.extents.push_back({each.offset_bytes, each.size_bytes});
    }
    return {};
}

result<peer_segments::shared_segment> peer_segments::request_share(world_rank owner, int device,
                                                                   std::size_t num_known) {
    share_request request;
    request.device = device;
    request.num_known = static_cast<std::uint32_t>(num_known);
    // A name that is unique on the node and cannot be guessed.
    std::string const name =
        fmt::format("diomp-ipc-{}-{}-{:x}", ::getpid(), ++num_requests_, std::random_device()());
    std::memcpy(request.socket, name.c_str(), std::min(name.size(), sizeof(request.socket) - 1));
    auto listener = transport::listen_for_peers(name, 1);
    DIOMP_TRY(listener);
    auto replied = calls_.call<share_reply>(owner, share_handler_, request, [owner, device] {
        return fmt::format("waiting for rank {} to share the memory of its device {}",
                           owner.value(), device);
    });
    DIOMP_TRY(replied);
    share_reply const &about = replied.value();
    if (about.failure != 0) {
        return error(static_cast<ompx_status>(about.failure),
                     fmt::format("rank {} does not share the memory of its device {}",
                                 owner.value(), device));
    }
    auto got = transport::receive_descriptors(listener.value().get(), delivery_timeout_ms);
    DIOMP_TRY(got);
    shared_segment made{about.made_by, about.uuid, {about.reserved_bytes, {}}};
    auto fd = got.value().fds.begin();
    for (std::uint32_t i = 0; i < about.num_extents; ++i) {
        extent_header each;
        if (got.value().bytes.size() < (i + 1) * sizeof(each)) {
            return error(OMPX_ERR_SYSTEM, "a delivery of shared device memory is too short");
        }
        std::memcpy(&each, got.value().bytes.data() + i * sizeof(each), sizeof(each));
        bool const has_fd = each.has_fd != 0 && fd != got.value().fds.end();
        made.handle.extents.push_back(
            {each.offset, each.nbytes, has_fd ? std::move(*fd++) : unique_fd(), each.token});
    }
    return made;
}

void peer_segments::on_share_request(const transport::message &incoming) {
    share_request request;
    std::memcpy(&request, incoming.payload.data(), sizeof(request));
    request.socket[sizeof(request.socket) - 1] = '\0';
    device_segment const *const segment = own_.find(request.device);
    segment_memory *const memory = segment == nullptr ? nullptr : segment->memory();
    share_reply reply;
    std::vector<std::byte> bytes;
    std::vector<int> fds;
    auto const fail = [&](const error &why) {
        log(log_level::info, "device {} is not shared with rank {}: {}", request.device,
            incoming.source.value(), why.message());
        reply.failure = why.code();
        calls_.reply(incoming.source, request.header.id, reply);
    };
    if (memory == nullptr) {
        return fail({OMPX_ERR_UNSUPPORTED, "its memory cannot be shared"});
    }
    accelerator const &on = memory->on();
    auto const uuid = on.backend->uuid_of(on.id);
    if (!uuid) {
        return fail(uuid.failure());
    }
    auto shared = memory->share(request.num_known, transport::max_descriptors);
    if (!shared) {
        return fail(shared.failure());
    }
    reply.reserved_bytes = shared.value().reserved_bytes;
    reply.uuid = uuid.value();
    reply.made_by = on.made_by;
    for (device::shared_extent const &each : shared.value().extents) {
        extent_header const header{each.offset_bytes, each.size_bytes, each.token,
                                   each.fd.valid() ? 1U : 0U, 0};
        auto const *const from = reinterpret_cast<const std::byte *>(&header);
        bytes.insert(bytes.end(), from, from + sizeof(header));
        if (each.fd.valid()) {
            fds.push_back(each.fd.get());
        }
        ++reply.num_extents;
    }
    bytes.push_back({}); // never empty
    if (status const sent = transport::send_descriptors(request.socket, bytes, fds); !sent) {
        return fail(sent.failure());
    }
    calls_.reply(incoming.source, request.header.id, reply);
}

} // namespace diomp::offload
