// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Encoding and parsing of PMI-1 and PMI-2 messages.
//
// PMI-1: lines of "cmd=put kvsname=a key=b value=c\n". PMI-2: a line to negotiate the version, then
// "    34cmd=kvs-put;key=b;value=c;", each preceded by its length. Neither defines how a separator
// inside a value is written, so separators are encoded as %XX.
#pragma once

#include "base/ids.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace diomp::launch::pmi {

/// Fields of a command or a reply, in the order of the message.
using fields = std::vector<std::pair<std::string, std::string>>;

/// nullptr if there is none.
[[nodiscard]] const std::string *find_field(const fields &all, std::string_view name);

/// "cmd=a b=c", without a newline.
[[nodiscard]] std::string write_line(const fields &all);
[[nodiscard]] fields read_line(std::string_view line);

/// Size of the length field before each PMI-2 message.
inline constexpr std::size_t length_bytes = 6;
/// The length field and "cmd=a;b=c;".
[[nodiscard]] std::string write_message(const fields &all);
/// Parses the length field of a message; empty if it is not a number.
[[nodiscard]] std::optional<std::size_t> read_length(std::string_view bytes);
[[nodiscard]] fields read_message(std::string_view message);

/// Escapes a value. Letters, digits and most signs stay; separators of either protocol, '%', spaces
/// and bytes outside of ASCII become %XX.
[[nodiscard]] std::string escape(std::string_view text);
/// Inverse of escape(); empty if `text` is malformed.
[[nodiscard]] std::optional<std::string> unescape(std::string_view text);

/// Splits a value into chunks of at most `limit` bytes; the first begins with their number:
/// "2:abc", "def". At least one chunk.
[[nodiscard]] std::vector<std::string> split_value(std::string_view value, std::size_t limit);
/// Parses the first chunk: the number of chunks and its own data.
[[nodiscard]] std::optional<std::pair<int, std::string_view>>
parse_first_chunk(std::string_view chunk);

/// The ranks on the node of `rank` according to PMI_process_mapping, "(vector,(first
/// node,nodes,ranks per node),...)": blocks are assigned in order, repeatedly until all `size`
/// ranks have a node. Empty if the text is malformed.
[[nodiscard]] std::optional<std::vector<world_rank>> ranks_on_node(std::string_view mapping,
                                                                   int rank, int size);

} // namespace diomp::launch::pmi
