// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The runtime's part of a segment as the workspace of groups.
#pragma once

#include "group/internal/workspace.h"
#include "memory/segment.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace diomp::group {

class segment_workspace final : public workspace {
public:
    explicit segment_workspace(memory::segment &own) : own_(own) {}
    using workspace::allocate;
    std::optional<std::uint64_t> allocate(std::size_t nbytes, std::size_t min_free_bytes) override {
        return own_.allocate_internal(nbytes, min_free_bytes);
    }
    void release(std::uint64_t slot_offset) override { own_.release_internal(slot_offset); }
    [[nodiscard]] bool contains(std::span<const std::byte> range) const override {
        auto const offset = static_cast<std::size_t>(range.data() - own_.base());
        return offset < own_.size_bytes() && range.size() <= own_.size_bytes() - offset;
    }

private:
    memory::segment &own_;
};

} // namespace diomp::group
