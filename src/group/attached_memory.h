// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Private memory of the members of a group on one node, by cross-memory attach: one copy between
// two members' buffers instead of two through a stage buffer, at the price of system calls.
#pragma once

#include "base/ids.h"
#include "base/result.h"
#include "group/agreed_autotuner.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace diomp::messaging {
class engine;
}

namespace diomp::group {

/// Used by the thread that holds the group's call lock. Members by local index.
class attached_memory {
public:
    attached_memory(messaging::engine &engine, std::span<const world_rank> members,
                    std::size_t self)
        : engine_(engine), members_(members), self_(self) {}

    /// Whether the system lets this member access the memory of all others. The first call tests
    /// it; false for good after forbid(). `probes`: an address that can be read, by member.
    [[nodiscard]] bool is_permitted(std::span<std::byte *const> probes);
    /// A member must not access the others.
    void forbid() { state_ = state::forbidden; }
    /// Whether other members can access a buffer of this member: memory that a driver has mapped
    /// may not allow it. The answer for the last few buffers is kept.
    [[nodiscard]] bool can_export(const void *buffer, std::size_t nbytes);

    /// Blocks until the bytes are copied from or to a member's memory.
    status read(std::size_t member, const std::byte *from, std::byte *to, std::size_t nbytes);
    status write(std::size_t member, std::byte *to, const std::byte *from, std::size_t nbytes);

    /// Names calls of one collective with blocks of about one size.
    [[nodiscard]] static std::uint32_t key_of(std::uint32_t collective, std::size_t block_bytes) {
        return collective << width_bits | static_cast<std::uint32_t>(std::bit_width(block_bytes));
    }
    /// Chooses between stage buffers (0) and attached memory (1) for the calls of a key.
    [[nodiscard]] agreed_autotuner &tuner(std::uint32_t key);
    /// The members' copies of a tuner differ, since a call has failed on some of them.
    void reset_tuner(std::uint32_t key) { tuner(key) = new_tuner(key); }

private:
    enum class state : std::uint8_t { untested, permitted, forbidden };
    static constexpr unsigned width_bits = 8;
    [[nodiscard]] static agreed_autotuner new_tuner(std::uint32_t key);
    struct exported_range {
        const void *begin = nullptr;
        std::size_t nbytes = 0;
    };

    messaging::engine &engine_;
    std::span<const world_rank> members_;
    std::size_t self_;
    state state_ = state::untested;
    std::array<exported_range, 4> exported_{};
    std::size_t next_exported_ = 0;
    std::vector<std::pair<std::uint32_t, agreed_autotuner>> tuners_;
};

} // namespace diomp::group
