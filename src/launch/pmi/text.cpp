// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "launch/pmi/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

namespace diomp::launch::pmi {
namespace {

fields split(std::string_view text, char separator) {
    fields all;
    while (!text.empty()) {
        std::size_t const end = std::min(text.find(separator), text.size());
        std::string_view const field = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        std::size_t const equals = field.find('=');
        if (equals != std::string_view::npos) {
            all.emplace_back(field.substr(0, equals), field.substr(equals + 1));
        }
    }
    return all;
}

/// Removes a non-negative number from the beginning of `text`.
std::optional<int> take_number(std::string_view &text) {
    int value = 0;
    auto const parsed = std::from_chars(text.data(), text.data() + text.size(), value);
    if (parsed.ec != std::errc() || value < 0) {
        return std::nullopt;
    }
    text.remove_prefix(static_cast<std::size_t>(parsed.ptr - text.data()));
    return value;
}

bool take(std::string_view &text, std::string_view expected) {
    if (!text.starts_with(expected)) {
        return false;
    }
    text.remove_prefix(expected.size());
    return true;
}

struct block {
    int first_node = 0;
    int num_nodes = 0;
    int ranks_per_node = 0;
};

std::optional<block> take_block(std::string_view &text) {
    if (!take(text, ",(")) {
        return std::nullopt;
    }
    auto const first = take_number(text);
    auto const nodes = first && take(text, ",") ? take_number(text) : std::nullopt;
    auto const ranks = nodes && take(text, ",") ? take_number(text) : std::nullopt;
    if (!ranks || *nodes == 0 || *ranks == 0 || !take(text, ")")) {
        return std::nullopt;
    }
    return block{*first, *nodes, *ranks};
}

/// All blocks of "(vector,...)"; empty if the text is malformed.
std::vector<block> read_mapping(std::string_view text) {
    std::vector<block> blocks;
    if (!take(text, "(vector")) {
        return {};
    }
    while (text != ")") {
        auto const next = take_block(text);
        if (!next) {
            return {};
        }
        blocks.push_back(*next);
    }
    return blocks;
}

std::optional<unsigned char> hex_digit(char c) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    std::size_t const position = digits.find(c);
    if (position == std::string_view::npos) {
        return std::nullopt;
    }
    return static_cast<unsigned char>(position);
}

} // namespace

const std::string *find_field(const fields &all, std::string_view name) {
    auto const found = std::ranges::find(all, name, &fields::value_type::first);
    return found == all.end() ? nullptr : &found->second;
}

std::string write_line(const fields &all) {
    std::string line;
    for (auto const &[name, value] : all) {
        line += fmt::format("{}{}={}", line.empty() ? "" : " ", name, value);
    }
    return line;
}

fields read_line(std::string_view line) { return split(line, ' '); }

std::string write_message(const fields &all) {
    std::string message;
    for (auto const &[name, value] : all) {
        message += fmt::format("{}={};", name, value);
    }
    return fmt::format("{:<{}}{}", message.size(), length_bytes, message);
}

std::optional<std::size_t> read_length(std::string_view bytes) {
    // Padded with spaces on either side.
    std::size_t const begin = bytes.find_first_not_of(' ');
    std::size_t const end = bytes.find_last_not_of(' ');
    if (begin == std::string_view::npos) {
        return std::nullopt;
    }
    std::string_view digits = bytes.substr(begin, end - begin + 1);
    auto const length = take_number(digits);
    if (!length || !digits.empty()) {
        return std::nullopt;
    }
    return static_cast<std::size_t>(*length);
}

fields read_message(std::string_view message) { return split(message, ';'); }

std::string escape(std::string_view text) {
    constexpr std::string_view reserved = "%=; ";
    std::string safe;
    for (char const c : text) {
        if (c > ' ' && c <= '~' && reserved.find(c) == std::string_view::npos) {
            safe += c;
        } else {
            safe += fmt::format("%{:02X}", static_cast<unsigned char>(c));
        }
    }
    return safe;
}

std::optional<std::string> unescape(std::string_view text) {
    std::string plain;
    for (std::size_t position = 0; position < text.size(); ++position) {
        if (text[position] != '%') {
            plain += text[position];
            continue;
        }
        if (position + 2 >= text.size()) {
            return std::nullopt;
        }
        auto const high = hex_digit(text[position + 1]);
        auto const low = hex_digit(text[position + 2]);
        if (!high || !low) {
            return std::nullopt;
        }
        plain += static_cast<char>(*high * 16 + *low);
        position += 2;
    }
    return plain;
}

std::vector<std::string> split_value(std::string_view value, std::size_t limit) {
    // Space for "<count>:"; larger counts of chunks exceed what a launcher can store.
    constexpr std::size_t count_bytes = 8;
    std::size_t const step = limit - count_bytes;
    std::size_t const count = std::max<std::size_t>(1, (value.size() + step - 1) / step);
    std::vector<std::string> chunks;
    chunks.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
        chunks.emplace_back(value.substr(i * step, step));
    }
    chunks.front().insert(0, fmt::format("{}:", count));
    return chunks;
}

std::optional<std::pair<int, std::string_view>> parse_first_chunk(std::string_view chunk) {
    auto const count = take_number(chunk);
    if (!count || *count == 0 || !take(chunk, ":")) {
        return std::nullopt;
    }
    return std::pair(*count, chunk);
}

std::optional<std::vector<world_rank>> ranks_on_node(std::string_view mapping, int rank, int size) {
    std::vector<block> const blocks = read_mapping(mapping);
    if (blocks.empty()) {
        return std::nullopt;
    }
    std::map<long, std::vector<world_rank>> nodes;
    long own_node = -1;
    int next = 0;
    while (next < size) {
        for (block const &next_block : blocks) {
            for (int position = 0; position < next_block.num_nodes && next < size; ++position) {
                long const node = static_cast<long>(next_block.first_node) + position;
                for (int i = 0; i < next_block.ranks_per_node && next < size; ++i, ++next) {
                    nodes[node].emplace_back(next);
                    own_node = next == rank ? node : own_node;
                }
            }
        }
    }
    return nodes[own_node];
}

} // namespace diomp::launch::pmi
