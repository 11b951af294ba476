// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/sizes.h"
#include "config/internal/rows.h"

#include <fmt/core.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>

namespace diomp::config {
namespace {

constexpr std::array<std::pair<const char *, check_level>, 2> check_words{
    {{"none", check_level::none}, {"allocations", check_level::allocations}}};

struct base_address {
    static status parse(std::uint64_t &into, const std::string &text) {
        if (text == "auto") {
            into = 0;
            return {};
        }
        char *end = nullptr;
        errno = 0;
        unsigned long long const value = std::strtoull(text.c_str(), &end, 0);
        if (text.empty() || *end != '\0' || errno != 0 || value % (1ull << 30) != 0 || value == 0) {
            return malformed(text, "a virtual address that is a multiple of 1 GiB, or 'auto'");
        }
        into = value;
        return {};
    }
    static std::string show(std::uint64_t value) {
        return value == 0 ? "auto" : fmt::format("{:#x}", value);
    }
};

struct core_size {
    static status parse(core_content &into, const std::string &text) {
        into = {};
        if (text == "none") {
            into.own_bytes = 0;
        } else if (text == "own") {
            into.own_bytes = SIZE_MAX;
        } else if (text == "all") {
            into.whole_arena = true;
        } else {
            auto size = parse_size(text);
            if (!size) {
                return malformed(text, "a size, or one of none, own, all");
            }
            into.own_bytes = size.value();
        }
        return {};
    }
    static std::string show(const core_content &value) {
        if (value.whole_arena) {
            return "all";
        }
        switch (value.own_bytes) {
        case 0:
            return "none";
        case SIZE_MAX:
            return "own";
        default:
            return format_size(value.own_bytes);
        }
    }
};

} // namespace

std::span<const setting_row> memory_rows() {
    static constexpr auto rows = std::to_array<setting_row>({
        {"DIOMP_SEGMENT_SIZE", "size", "auto",
         "Address space reserved per rank for global memory. Physical memory is allocated on "
         "first touch. auto: the size of the node's memory, or an equal fraction of the reserved "
         "address range if many ranks run on the node.",
         value<auto_size>([](auto &s) -> auto & { return s.memory.segment_size_bytes; })},
        {"DIOMP_SEGMENT_BASE", "address", "auto",
         "Virtual address of the segments, equal in all processes. Change it if another library "
         "occupies the default.",
         value<base_address>([](auto &s) -> auto & { return s.memory.segment_base; })},
        {"DIOMP_CHECK", "none|allocations", "none",
         "allocations: check every transfer against the end of its allocation, not only of its "
         "segment. Costs a lookup per transfer.",
         value<word<check_words>>([](auto &s) -> auto & { return s.memory.check; })},
        {"DIOMP_CORE", "size|none|own|all", "16M",
         "Global memory in core files. size: up to this size of the rank's own allocations, from "
         "the start of its symmetric and the end of its local and asymmetric memory; none; own: "
         "all of the rank's own allocations; all: the segments of all ranks of the node, "
         "gigabytes that are committed while they are written.",
         value<core_size>([](auto &s) -> auto & { return s.memory.core; })},
    });
    return rows;
}

} // namespace diomp::config
