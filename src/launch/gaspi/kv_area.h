// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Layout of the values that a rank has published in its key-value area: a length, then records.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace diomp::launch::gaspi {

struct kv_record {
    std::uint32_t key_bytes;
    std::uint32_t value_bytes;
};

constexpr std::size_t kv_header_bytes = sizeof(std::uint32_t);

/// Bytes in use, including the length; 0 if nothing has been written.
inline std::size_t used_bytes(std::span<const std::byte> kv_area) {
    std::uint32_t used = 0;
    std::memcpy(&used, kv_area.data(), sizeof(used));
    return used;
}

/// False if the area has no space left.
inline bool append_value(std::span<std::byte> kv_area, std::string_view key,
                         std::string_view value) {
    std::size_t at = used_bytes(kv_area);
    at = at == 0 ? kv_header_bytes : at;
    std::size_t const end = at + sizeof(kv_record) + key.size() + value.size();
    if (end > kv_area.size()) {
        return false;
    }
    kv_record const head{static_cast<std::uint32_t>(key.size()),
                         static_cast<std::uint32_t>(value.size())};
    std::memcpy(kv_area.data() + at, &head, sizeof(head));
    std::memcpy(kv_area.data() + at + sizeof(head), key.data(), key.size());
    std::memcpy(kv_area.data() + at + sizeof(head) + key.size(), value.data(), value.size());
    auto const used = static_cast<std::uint32_t>(end);
    std::memcpy(kv_area.data(), &used, sizeof(used));
    return true;
}

inline std::optional<std::string> find_value(std::span<const std::byte> kv_area,
                                             std::string_view wanted) {
    std::size_t const end = kv_area.empty() ? 0 : std::min(used_bytes(kv_area), kv_area.size());
    const auto *const text = reinterpret_cast<const char *>(kv_area.data());
    std::size_t at = kv_header_bytes;
    while (at + sizeof(kv_record) <= end) {
        kv_record head{};
        std::memcpy(&head, kv_area.data() + at, sizeof(head));
        at += sizeof(head);
        if (std::size_t{head.key_bytes} + head.value_bytes > end - at) {
            break;
        }
        std::string_view const key(text + at, head.key_bytes);
        std::string_view const value(text + at + head.key_bytes, head.value_bytes);
        if (key == wanted) {
            return std::string(value);
        }
        at += key.size() + value.size();
    }
    return std::nullopt;
}

} // namespace diomp::launch::gaspi
