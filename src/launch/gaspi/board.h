// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a rank has published, as it lies on its board: a length, and records behind it.
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

struct board_record {
    std::uint32_t key_bytes;
    std::uint32_t value_bytes;
};

constexpr std::size_t board_head_bytes = sizeof(std::uint32_t);

/// Bytes in use, the length included; 0 on a board that nobody has written to.
inline std::size_t used_bytes(std::span<const std::byte> board) {
    std::uint32_t used = 0;
    std::memcpy(&used, board.data(), sizeof(used));
    return used;
}

/// False if there is no room.
inline bool append_value(std::span<std::byte> board, std::string_view key, std::string_view value) {
    std::size_t at = used_bytes(board);
    at = at == 0 ? board_head_bytes : at;
    std::size_t const end = at + sizeof(board_record) + key.size() + value.size();
    if (end > board.size()) {
        return false;
    }
    board_record const head{static_cast<std::uint32_t>(key.size()),
                            static_cast<std::uint32_t>(value.size())};
    std::memcpy(board.data() + at, &head, sizeof(head));
    std::memcpy(board.data() + at + sizeof(head), key.data(), key.size());
    std::memcpy(board.data() + at + sizeof(head) + key.size(), value.data(), value.size());
    auto const used = static_cast<std::uint32_t>(end);
    std::memcpy(board.data(), &used, sizeof(used));
    return true;
}

inline std::optional<std::string> find_value(std::span<const std::byte> board,
                                             std::string_view wanted) {
    std::size_t const end = board.empty() ? 0 : std::min(used_bytes(board), board.size());
    const auto *const text = reinterpret_cast<const char *>(board.data());
    std::size_t at = board_head_bytes;
    while (at + sizeof(board_record) <= end) {
        board_record head{};
        std::memcpy(&head, board.data() + at, sizeof(head));
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
