// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Registration of memory that all ranks have. Static data moves to symmetric memory, and is reached
// as such from then on, also after a later registration; other memory stays where it is.
#include "base/log.h"
#include "group/group.h"
#include "group/registry.h"
#include "memory/counterparts.h"
#include "memory/directory.h"
#include "memory/memory.h"
#include "memory/static_pages.h"
#include "rma/rma.h"
#include "runtime/collective_allocator.h"
#include "sync/call_signature.h"

#include <fmt/core.h>

#include <unistd.h>
#include <vector>

namespace diomp::runtime {

enum class memory_class : std::uint64_t { other, static_data, moved };

/// What ranks tell each other about the memory that a range is in. Static data is shared if all of
/// it but the base of the range is equal.
struct surroundings {
    memory_class where = memory_class::other;
    memory::page_run pages;   ///< other: empty
    std::uint64_t offset = 0; ///< moved: in the slot
};

namespace {

surroundings look_around(std::uintptr_t base, std::size_t nbytes) {
    if (auto const moved = memory::find_moved_pages(base, nbytes)) {
        return {memory_class::moved, moved->pages, moved->offset};
    }
    auto const pages = memory::find_static_pages(base, nbytes);
    return pages ? surroundings{memory_class::static_data, *pages, 0} : surroundings{};
}

sync::call_signature signature_of(sync::operation what, std::uint64_t amount) {
    sync::call_signature call;
    call.what = what;
    call.amount = amount;
    return call;
}

} // namespace

struct collective_allocator::symmetric_range {
    std::uintptr_t base = 0;
    std::size_t nbytes = 0;
    surroundings around;
    bool is_registered = false;
    std::vector<std::uint64_t> bases; ///< [rank]
    bool is_alike = true;             ///< the surroundings of all ranks

    [[nodiscard]] sync::round_payload payload() const {
        return {base, is_registered ? 1U : 0U,
                static_cast<std::uint64_t>(around.where) | around.offset << 2, around.pages.nbytes,
                base - around.pages.base};
    }
};

status collective_allocator::exchange_ranges(symmetric_range &own) {
    group::group &world = groups_.world();
    sync::round_payload const mine = own.payload();
    DIOMP_TRY(
        world.arrive_and_wait(signature_of(sync::operation::register_symmetric, own.nbytes), mine));
    own.bases.resize(world.size());
    for (std::size_t rank = 0; rank < own.bases.size(); ++rank) {
        sync::round_payload const &theirs = world.payload_of(rank);
        own.bases[rank] = theirs[0];
        own.is_alike =
            own.is_alike && theirs[2] == mine[2] && theirs[3] == mine[3] && theirs[4] == mine[4];
        if (theirs[1] == 0) {
            return error(OMPX_ERR_ADDRESS, fmt::format("rank {} cannot register its range", rank),
                         "pass memory of the program that is not registered yet, on all ranks");
        }
    }
    return {};
}

result<std::optional<std::uint64_t>>
collective_allocator::share_static_data(const symmetric_range &range) {
    surroundings const &around = range.around;
    if (!range.is_alike || around.where == memory_class::other) {
        return std::optional<std::uint64_t>();
    }
    std::uint64_t const inside = range.base - around.pages.base;
    if (around.where == memory_class::moved) {
        return std::optional(around.offset - memory::internal_bytes + inside);
    }
    auto block =
        allocate_together(OMPX_MEM_SYMMETRIC, around.pages.nbytes,
                          static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)), contents::undefined);
    if (!block && block.failure().code() != OMPX_ERR_NOMEM) {
        return block.take_failure();
    }
    if (!block) {
        log(log_level::info, "static data stays private memory: {}", block.failure().message());
        return std::optional<std::uint64_t>();
    }
    std::uint64_t const offset = *space_.own_offset(block.value());
    status const moved =
        memory::move_static_pages(arena_, self_, around.pages, memory::internal_bytes + offset);
    auto agreed =
        groups_.world().agree(signature_of(sync::operation::register_symmetric, range.nbytes),
                              moved ? std::nullopt : std::optional<std::uint64_t>(1));
    DIOMP_TRY(agreed);
    if (agreed.value()) {
        log(log_level::info, "static data stays private memory: rank {} cannot move its own",
            agreed.value()->member);
        return std::optional<std::uint64_t>();
    }
    return std::optional(offset + inside);
}

status collective_allocator::register_symmetric(void *ptr, std::size_t nbytes) {
    symmetric_range range{reinterpret_cast<std::uintptr_t>(ptr), nbytes, {}, false, {}, true};
    status own;
    if (ptr == nullptr || space_.in_arena(ptr)) {
        own = error(OMPX_ERR_ADDRESS,
                    ptr == nullptr ? "ptr is a null pointer"
                                   : "the range is in a segment and reachable already",
                    "pass memory of the program, or use symmetric memory as it is");
    } else {
        own = directory_.add(range.base, nbytes);
        range.around = look_around(range.base, nbytes);
    }
    range.is_registered = own.ok();
    auto const call_lock = groups_.world().lock_calls();
    group::several_rounds const rounds(groups_.world());
    if (status agreed = exchange_ranges(range); !agreed) {
        if (own) {
            DIOMP_TRY(directory_.remove(range.base));
        }
        return own ? std::move(agreed) : std::move(own);
    }
    auto offset = share_static_data(range);
    if (!offset) {
        DIOMP_TRY(directory_.remove(range.base));
        return offset.take_failure();
    }
    space_.counterparts().add(range.base, nbytes, std::move(range.bases), offset.value());
    return {};
}

status collective_allocator::unregister_symmetric(void *ptr) {
    auto const base = reinterpret_cast<std::uintptr_t>(ptr);
    auto const number = space_.counterparts().number_of(base);
    if (!number) {
        return error(OMPX_ERR_ADDRESS, "no symmetric range starts there",
                     "pass the address that was given to ompx_register_symmetric, once");
    }
    DIOMP_TRY(transfers_.fence());
    {
        auto const call_lock = groups_.world().lock_calls();
        group::several_rounds const rounds(groups_.world());
        DIOMP_TRY(groups_.world().arrive_and_wait(
            signature_of(sync::operation::unregister_symmetric, *number)));
    }
    space_.counterparts().remove(base);
    return directory_.remove(base);
}

} // namespace diomp::runtime
