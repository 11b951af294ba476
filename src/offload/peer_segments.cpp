// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/peer_segments.h"

#include "base/log.h"
#include "conduit/fd_exchange.h"
#include "offload/segment_memory.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <unistd.h>

namespace diomp::offload {
namespace {

constexpr int delivery_timeout_ms = 10000;

} // namespace

struct peer_segments::question {
    conduit::request_header header;
    std::int32_t device = 0;
    std::uint32_t num_known = 0;
    char socket[48] = {}; ///< where to deliver the parts
};

struct peer_segments::answer {
    std::uint64_t reserved_bytes = 0;
    device::device_uuid uuid{};
    vendor made_by = vendor::none;
    std::uint32_t num_parts = 0;
    std::int32_t failure = 0;
};

/// In a delivery; whether there is a descriptor for it follows from has_fd, in order.
struct peer_segments::part_header {
    std::uint64_t offset = 0;
    std::uint64_t nbytes = 0;
    std::array<std::byte, 64> token{};
    std::uint32_t has_fd = 0;
    std::uint32_t unused = 0;
};

bool peer_segments::covers(const entry &of, std::uint64_t offset, std::size_t nbytes) {
    std::uint64_t const end = offset + nbytes;
    while (offset < end) {
        auto const around = std::ranges::find_if(
            of.parts, [&](const extent &part) { return offset - part.offset < part.nbytes; });
        if (around == of.parts.end()) {
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
    while (!known.refused && (known.memory == nullptr || !covers(known, offset, nbytes))) {
        std::size_t const had = known.parts.size();
        auto more = ask(owner, device, had);
        DIOMP_TRY(more);
        if (status const followed = follow(known, more.value(), local); !followed) {
            known.refused = true;
            log(log_level::info, "no device IPC with rank {} on its device {}: {}", owner.value(),
                device, followed.failure().message());
        } else if (known.parts.size() == had) {
            return error(OMPX_ERR_RANGE,
                         fmt::format("rank {} has no memory at offset {} of device {}",
                                     owner.value(), offset, device));
        }
    }
    if (known.refused) {
        return error(OMPX_ERR_UNSUPPORTED, "no device of this process reaches the memory");
    }
    return opened{known.memory->base() + offset, known.by};
}

/// A device that may touch the owner's memory: the local side's own, so that one copy does it, else
/// (the local side is in host memory) the owner's.
const accelerator *peer_segments::choose(const delivered &of, const accelerator *local) {
    auto const *const same = accelerators_.find(of.made_by, of.uuid);
    if (local == nullptr || local == same) {
        return same;
    }
    if (same == nullptr || local->made_by != of.made_by) {
        return nullptr;
    }
    auto const reaches = local->backend->can_reach(local->id, same->id);
    return reaches && reaches.value() ? local : nullptr;
}

status peer_segments::follow(entry &of, const delivered &more, const accelerator *local) {
    if (of.memory == nullptr) {
        of.by = choose(more, local);
        if (of.by == nullptr) {
            return error(OMPX_ERR_UNSUPPORTED, "no device of this process reaches that device");
        }
        auto memory = of.by->backend->open_shared(of.by->id, more.handle);
        DIOMP_TRY(memory);
        of.memory = memory.take();
    } else {
        DIOMP_TRY(of.memory->map_more(more.handle));
    }
    for (device::shared_part const &part : more.handle.parts) {
        of.parts.push_back({part.offset_bytes, part.size_bytes});
    }
    return {};
}

result<peer_segments::delivered> peer_segments::ask(world_rank owner, int device,
                                                    std::size_t num_known) {
    question asked;
    asked.device = device;
    asked.num_known = static_cast<std::uint32_t>(num_known);
    // Nobody else on the node uses this name, or guesses it.
    std::string const name =
        fmt::format("diomp-ipc-{}-{}-{:x}", ::getpid(), ++num_questions_, std::random_device()());
    std::memcpy(asked.socket, name.c_str(), std::min(name.size(), sizeof(asked.socket) - 1));
    auto listener = conduit::listen_for_peers(name, 1);
    DIOMP_TRY(listener);
    auto told = calls_.call<answer>(owner, question_handler_, asked, [owner, device] {
        return fmt::format("waiting for rank {} to share the memory of its device {}",
                           owner.value(), device);
    });
    DIOMP_TRY(told);
    answer const &about = told.value();
    if (about.failure != 0) {
        return error(static_cast<ompx_status>(about.failure),
                     fmt::format("rank {} does not share the memory of its device {}",
                                 owner.value(), device));
    }
    auto got = conduit::accept_delivery(listener.value().get(), delivery_timeout_ms);
    DIOMP_TRY(got);
    delivered made{about.made_by, about.uuid, {about.reserved_bytes, {}}};
    auto fd = got.value().fds.begin();
    for (std::uint32_t i = 0; i < about.num_parts; ++i) {
        part_header part;
        if (got.value().bytes.size() < (i + 1) * sizeof(part)) {
            return error(OMPX_ERR_SYSTEM, "a delivery of shared device memory is too short");
        }
        std::memcpy(&part, got.value().bytes.data() + i * sizeof(part), sizeof(part));
        bool const has_fd = part.has_fd != 0 && fd != got.value().fds.end();
        made.handle.parts.push_back(
            {part.offset, part.nbytes, has_fd ? std::move(*fd++) : unique_fd(), part.token});
    }
    return made;
}

void peer_segments::on_question(const conduit::message &incoming) {
    question asked;
    std::memcpy(&asked, incoming.payload.data(), sizeof(asked));
    asked.socket[sizeof(asked.socket) - 1] = '\0';
    device_segment const *const segment = own_.find(asked.device);
    segment_memory *const memory = segment == nullptr ? nullptr : segment->memory();
    answer told;
    std::vector<std::byte> bytes;
    std::vector<int> fds;
    auto const fail = [&](const error &why) {
        log(log_level::info, "device {} is not shared with rank {}: {}", asked.device,
            incoming.source.value(), why.message());
        told.failure = why.code();
        calls_.reply(incoming.source, asked.header.id, told);
    };
    if (memory == nullptr) {
        return fail({OMPX_ERR_UNSUPPORTED, "its memory cannot be shared"});
    }
    accelerator const &on = memory->on();
    auto const uuid = on.backend->uuid_of(on.id);
    if (!uuid) {
        return fail(uuid.failure());
    }
    auto shared = memory->share(asked.num_known, conduit::max_descriptors);
    if (!shared) {
        return fail(shared.failure());
    }
    told.reserved_bytes = shared.value().reserved_bytes;
    told.uuid = uuid.value();
    told.made_by = on.made_by;
    for (device::shared_part const &part : shared.value().parts) {
        part_header const header{part.offset_bytes, part.size_bytes, part.token,
                                 part.fd.valid() ? 1U : 0U, 0};
        auto const *const from = reinterpret_cast<const std::byte *>(&header);
        bytes.insert(bytes.end(), from, from + sizeof(header));
        if (part.fd.valid()) {
            fds.push_back(part.fd.get());
        }
        ++told.num_parts;
    }
    bytes.push_back({}); // never empty
    if (status const sent = conduit::deliver(asked.socket, bytes, fds); !sent) {
        return fail(sent.failure());
    }
    calls_.reply(incoming.source, asked.header.id, told);
}

} // namespace diomp::offload
