// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "group/internal/local_group.h"

#include "base/log.h"
#include "group/attached_memory.h"
#include "group/internal/workspace.h"
#include "messaging/engine.h"
#include "transport/conduit.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

namespace diomp::group {
namespace {

std::vector<member_block *> locate_blocks(messaging::engine &engine,
                                          std::span<const world_rank> members,
                                          std::span<const std::uint64_t> offsets) {
    std::vector<member_block *> blocks;
    blocks.reserve(members.size());
    for (std::size_t member = 0; member < members.size(); ++member) {
        std::byte *const slot = engine.transport().direct_base(members[member]);
        blocks.push_back(reinterpret_cast<member_block *>(slot + offsets[member]));
    }
    return blocks;
}

template <typename Part>
std::vector<std::byte *> each_of(const std::vector<member_block *> &blocks, Part part) {
    std::vector<std::byte *> parts(blocks.size());
    std::ranges::transform(blocks, parts.begin(), part);
    return parts;
}

/// What madvise() does with the pages of a range, which would otherwise fault one by one in the
/// first rounds. Their contents do not change.
enum class populate : int {
    read = 22,  ///< MADV_POPULATE_READ (Linux 5.14): maps them here
    write = 23, ///< MADV_POPULATE_WRITE: also commits them
};

void populate_pages(std::byte *begin, std::size_t nbytes, populate how) {
    auto const page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    std::uintptr_t const first = reinterpret_cast<std::uintptr_t>(begin) & ~(page - 1);
    std::uintptr_t const end = reinterpret_cast<std::uintptr_t>(begin) + nbytes;
    if (::madvise(reinterpret_cast<void *>(first), end - first, static_cast<int>(how)) != 0) {
        log(log_level::debug, "stage buffers are mapped when they are used: {}",
            ::strerrordesc_np(errno));
    }
}

/// Maps the halves of the other members, which have committed them, up to a size that takes some
/// milliseconds.
void map_halves(std::span<std::byte *const> halves, std::size_t half_bytes, std::size_t self) {
    constexpr std::size_t max_bytes = std::size_t{64} << 20;
    std::size_t const num_mapped = std::min(halves.size() - 1, max_bytes / (2 * half_bytes));
    for (std::size_t step = 1; step <= num_mapped; ++step) {
        populate_pages(halves[(self + step) % halves.size()], 2 * half_bytes, populate::read);
    }
}

} // namespace

std::optional<std::uint64_t> allocate_block(workspace &space, std::byte *slot) {
    std::optional<std::uint64_t> const offset = space.allocate(sizeof(member_block));
    if (offset) {
        std::memset(slot + *offset, 0, offsetof(member_block, stage_buffers));
    }
    return offset;
}

local_group::local_group(messaging::engine &engine, workspace &space,
                         std::vector<world_rank> members, std::span<const std::uint64_t> offsets,
                         std::size_t self)
    : engine_(engine), space_(space), members_(std::move(members)), self_(static_cast<int>(self)),
      blocks_(locate_blocks(engine, members_, offsets)), own_offset_(offsets[self]),
      barrier_(engine, each_of(blocks_, [](member_block *of) { return of->barrier_area; }),
               members_, self),
      stage_buffers_(space,
                     each_of(blocks_, [](member_block *of) { return of->stage_buffers[0]; })),
      attached_(std::make_unique<attached_memory>(engine, members_, self)) {}

local_group::~local_group() {
    if (!keep_memory_) {
        stage_buffers_.release_large();
        space_.release(own_offset_);
    }
}

status local_group::begin_call() {
    DIOMP_TRY(barrier_.wait_all_arrived());
    if (known_restarts_ && *known_restarts_ != barrier_.restart().num_restarts()) [[unlikely]] {
        known_restarts_ = barrier_.restart().num_restarts();
        stage_buffers_.reset();
        attached_ = std::make_unique<attached_memory>(engine_, members_, self_.index());
    }
    return {};
}

bool local_group::can_attach() {
    // Every member has mapped these.
    return attached_->is_permitted(
        each_of(blocks_, [](member_block *of) { return of->barrier_area; }));
}

status local_group::grow_stage_buffers(const sync::call_signature &call,
                                       std::size_t stage_buffer_bytes,
                                       std::size_t buffer_half_bytes) {
    auto const &[offset, half_bytes] =
        stage_buffers_.allocate_large(stage_buffer_bytes, buffer_half_bytes);
    if (half_bytes > 0) {
        world_rank const own = members_[self_.index()];
        populate_pages(engine_.transport().direct_base(own) + offset, 2 * half_bytes,
                       populate::write);
    }
    DIOMP_TRY(barrier_.arrive_and_wait(call, {half_bytes, offset}));
    std::vector<std::byte *> halves;
    std::uint64_t smallest = half_bytes;
    for (std::size_t member = 0; member < size(); ++member) {
        const sync::round_payload &payload = barrier_.payload_of(member);
        smallest = std::min(smallest, payload[0]);
        halves.push_back(engine_.transport().direct_base(members_[member]) + payload[1]);
    }
    if (smallest > 0) {
        map_halves(halves, smallest, self_.index());
    }
    stage_buffers_.finish_growth(stage_buffer_bytes, std::move(halves), smallest);
    return {};
}

// After the last round a fast member must not free a flag slot that a slow one still polls. So each
// member counts itself as departed in every block, as its last access to that block.
status local_group::depart(const sync::call_signature &call) {
    for (member_block *const block : blocks_) {
        block->departed.fetch_add(1, std::memory_order_acq_rel);
    }
    for (world_rank const member : members_) {
        engine_.wake_for_store(member);
    }
    const std::atomic<std::uint64_t> &departed = blocks_[self_.index()]->departed;
    status left = engine_.wait(
        [&departed, this] { return departed.load(std::memory_order_acquire) == size(); },
        [this, &call] {
            return fmt::format("waiting for the other {} members to leave the group in {}",
                               size() - 1, describe(call));
        });
    keep_memory_ = !left.ok();
    return left;
}

} // namespace diomp::group
