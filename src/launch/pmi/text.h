// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The text of PMI-1 and PMI-2, without the socket.
//
// PMI-1: lines of "cmd=put kvsname=a key=b value=c\n". PMI-2: a line to agree on the version, then
// "    34cmd=kvs-put;key=b;value=c;", each with its length before it. Neither says how a separator
// inside a value is written, so ours have none: such bytes travel as %XX.
#pragma once

#include "base/ids.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace diomp::launch::pmi {

/// Fields of a command or a reply, in the order of the wire.
using fields = std::vector<std::pair<std::string, std::string>>;

/// nullptr if there is none.
[[nodiscard]] const std::string *find_field(const fields &all, std::string_view name);

/// "cmd=a b=c", without the line's end.
[[nodiscard]] std::string write_line(const fields &all);
[[nodiscard]] fields read_line(std::string_view line);

/// Bytes of the number before each PMI-2 message.
inline constexpr std::size_t length_bytes = 6;
/// The length and "cmd=a;b=c;".
[[nodiscard]] std::string write_message(const fields &all);
/// The number in the first bytes of a message; nothing if it is none.
[[nodiscard]] std::optional<std::size_t> read_length(std::string_view bytes);
[[nodiscard]] fields read_message(std::string_view message);

/// Letters, digits and most signs stay; separators of either protocol, '%', blanks and bytes
/// outside of ASCII become %XX.
[[nodiscard]] std::string escape(std::string_view text);
/// Nothing if `text` is not what escape() makes.
[[nodiscard]] std::optional<std::string> unescape(std::string_view text);

/// A value as pieces of at most `limit` bytes each, the first led by how many there are: "2:abc",
/// "def". At least one piece.
[[nodiscard]] std::vector<std::string> cut(std::string_view value, std::size_t limit);
/// How many pieces the first one announces, and what it holds itself.
[[nodiscard]] std::optional<std::pair<int, std::string_view>> read_first(std::string_view piece);

/// The ranks on the node of `rank` by PMI_process_mapping, "(vector,(first node,nodes,ranks per
/// node),...)": blocks are dealt in turn, and again from the first until all `size` ranks have a
/// node. Nothing if the text cannot be understood.
[[nodiscard]] std::optional<std::vector<world_rank>> ranks_on_node(std::string_view mapping,
                                                                   int rank, int size);

} // namespace diomp::launch::pmi
