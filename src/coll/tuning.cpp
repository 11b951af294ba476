// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "coll/tuning.h"

#include "base/read_file.h"
#include "base/sizes.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace diomp::coll {
namespace {

using sync::operation;

constexpr std::size_t max_tuning_bytes = std::size_t{1} << 20;
constexpr std::string_view blanks = " \t\r";

/// Splits at blanks; a word that begins with # and all after it are a comment.
std::vector<std::string_view> words_of(std::string_view line) {
    line = line.substr(0, line.find('#'));
    std::vector<std::string_view> words;
    for (std::size_t at = 0; (at = line.find_first_not_of(blanks, at)) != line.npos;) {
        std::size_t const end = std::min(line.find_first_of(blanks, at), line.size());
        words.push_back(line.substr(at, end - at));
        at = end;
    }
    return words;
}

/// The values of `get` over the rows that `wanted` accepts, each once: "bcast, reduce".
template <typename Get, typename Wanted>
std::string list_of(Get &&get, Wanted &&wanted) {
    std::vector<std::string> found;
    for (algorithm_row const &row : algorithm_rows()) {
        std::string name(get(row));
        if (wanted(row) && std::ranges::find(found, name) == found.end()) {
            found.push_back(std::move(name));
        }
    }
    std::string text;
    for (std::string const &name : found) {
        text += (text.empty() ? "" : ", ") + name;
    }
    return text;
}

error bad(std::string what, std::string remedy) {
    return {OMPX_ERR_ARG, std::move(what), std::move(remedy)};
}

struct count_form {
    static constexpr const char *example = "4, 2-16, 8- or -64";
    static result<std::size_t> parse(const std::string &text) {
        std::size_t number = 0;
        auto const end = text.data() + text.size();
        auto const read = std::from_chars(text.data(), end, number);
        return read.ec == std::errc{} && read.ptr == end
                   ? result<std::size_t>(number)
                   : bad(fmt::format("'{}' is not a number", text), "");
    }
};

struct size_form {
    static constexpr const char *example = "1024, 8K-256K, 1M- or -64K";
    static result<std::size_t> parse(const std::string &text) { return parse_size(text); }
};

/// One end of a range; `otherwise` if the text is empty.
template <typename Form>
result<std::size_t> end_of_range(std::string_view text, std::size_t otherwise) {
    return text.empty() ? result<std::size_t>(otherwise) : Form::parse(std::string(text));
}

template <typename Form>
status parse_range(number_range &into, std::string_view key, std::string_view text) {
    std::size_t const dash = text.find('-');
    std::string_view const end = dash == text.npos ? text : text.substr(dash + 1);
    auto const first = end_of_range<Form>(text.substr(0, dash), 0);
    auto const last = end_of_range<Form>(end, SIZE_MAX);
    bool const is_empty = text.empty() || text == "-";
    if (is_empty || !first || !last) {
        return bad(fmt::format("{}={} is not a range", key, text),
                   fmt::format("write {} as {}", key, Form::example));
    }
    if (first.value() > last.value()) {
        return bad(fmt::format("{}={} ends before it begins", key, text),
                   fmt::format("write the smaller number first, as {}", Form::example));
    }
    into = {first.value(), last.value()};
    return {};
}

std::string list_of_collectives() {
    return list_of([](auto &row) { return short_name_of(row.what); }, [](auto &) { return true; });
}

std::string list_of_algorithms(operation what, network_level level) {
    return list_of([](auto &row) { return name_of(row.method); },
                   [&](auto &row) { return row.what == what && row.level == level; });
}

result<operation> parse_collective(std::string_view word) {
    auto const rows = algorithm_rows();
    auto const found = std::ranges::find_if(
        rows, [&](const algorithm_row &row) { return short_name_of(row.what) == word; });
    if (found == rows.end()) {
        return bad(fmt::format("there is no collective '{}' with a choice of algorithms", word),
                   fmt::format("use one of {}", list_of_collectives()));
    }
    return found->what;
}

result<network_level> parse_level(std::string_view word) {
    for (network_level const each : {network_level::node, network_level::nodes}) {
        if (word == name_of(each)) {
            return each;
        }
    }
    return bad(fmt::format("'{}' is no level", word),
               "use node (among the members of a node) or nodes (between nodes)");
}

result<const algorithm_row *> parse_algorithm(operation what, network_level level,
                                              std::string_view word) {
    for (algorithm_row const &row : algorithm_rows()) {
        if (row.what == what && row.level == level && name_of(row.method) == word) {
            return &row;
        }
    }
    std::string const known = list_of_algorithms(what, level);
    return bad(fmt::format("{} at level {} has no algorithm '{}'", short_name_of(what),
                           name_of(level), word),
               known.empty() ? "leave the line out: there is no choice"
                             : fmt::format("use one of {}", known));
}

status parse_chunk(std::size_t &into, const algorithm_row &row, std::string_view text) {
    if (row.min_chunk_bytes == 0) {
        return bad(fmt::format("{} of {} has no chunks of a size that can be chosen",
                               name_of(row.method), short_name_of(row.what)),
                   "leave chunk= out");
    }
    auto const parsed = parse_size(std::string(text));
    if (!parsed || parsed.value() < row.min_chunk_bytes || parsed.value() > row.max_chunk_bytes) {
        return bad(fmt::format("chunk={} is not possible for {} of {}", text, name_of(row.method),
                               short_name_of(row.what)),
                   fmt::format("use a size from {}K to {}K", row.min_chunk_bytes >> 10,
                               row.max_chunk_bytes >> 10));
    }
    into = parsed.value();
    return {};
}

status parse_condition(tuning_rule &into, const algorithm_row &row, std::string_view word) {
    std::size_t const equals = word.find('=');
    std::string_view const key = word.substr(0, equals);
    std::string_view const text = equals == word.npos ? "" : word.substr(equals + 1);
    if (key == "members") {
        return parse_range<count_form>(into.members, key, text);
    }
    if (key == "nodes" && row.level == network_level::nodes) {
        return parse_range<count_form>(into.nodes, key, text);
    }
    if (key == "bytes") {
        return parse_range<size_form>(into.bytes, key, text);
    }
    if (key == "chunk") {
        return parse_chunk(into.choice.chunk_bytes, row, text);
    }
    return bad(fmt::format("'{}' is not known here", word),
               "use members=, bytes=, chunk=, and at level nodes also nodes=");
}

result<tuning_rule> parse_rule(const std::vector<std::string_view> &words) {
    constexpr std::size_t num_fixed = 3;
    if (words.size() < num_fixed) {
        return bad("a rule has too few words",
                   "write COLLECTIVE LEVEL ALGORITHM, then members=, nodes=, bytes=, chunk=");
    }
    auto what = parse_collective(words[0]);
    DIOMP_TRY(what);
    auto level = parse_level(words[1]);
    DIOMP_TRY(level);
    auto found = parse_algorithm(what.value(), level.value(), words[2]);
    DIOMP_TRY(found);
    algorithm_row const &row = *found.value();
    tuning_rule rule{what.value(), level.value(), {row.method, 0}, {}, {}, {}};
    for (std::size_t i = num_fixed; i < words.size(); ++i) {
        DIOMP_TRY(parse_condition(rule, row, words[i]));
    }
    if (rule.bytes.first > row.max_bytes) {
        return bad(fmt::format("{} of {} takes blocks of up to {} bytes, the rule begins at {}",
                               words[2], words[0], row.max_bytes, rule.bytes.first),
                   fmt::format("lower bytes=, or use another of {}",
                               list_of_algorithms(rule.what, rule.level)));
    }
    rule.bytes.last = std::min(rule.bytes.last, row.max_bytes);
    return rule;
}

std::string range_text(std::string_view key, const number_range &range) {
    if (range.first == 0 && range.last == SIZE_MAX) {
        return "";
    }
    std::string const last = range.last == SIZE_MAX ? "" : fmt::format("{}", range.last);
    return fmt::format(" {}={}-{}", key, range.first, last);
}

} // namespace

std::string to_text(const tuning_rule &rule) {
    std::string const chunk =
        rule.choice.chunk_bytes == 0 ? "" : fmt::format(" chunk={}", rule.choice.chunk_bytes);
    return fmt::format("{} {} {}{}{}{}{}", short_name_of(rule.what), name_of(rule.level),
                       name_of(rule.choice.method), range_text("members", rule.members),
                       range_text("nodes", rule.nodes), range_text("bytes", rule.bytes), chunk);
}

result<tuning_rules> tuning_rules::parse(std::string_view text, std::string_view file) {
    tuning_rules made;
    for (std::size_t number = 1; !text.empty(); ++number) {
        std::size_t const end = std::min(text.find('\n'), text.size());
        auto const words = words_of(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
        if (words.empty()) {
            continue;
        }
        auto rule = parse_rule(words);
        if (!rule) {
            return error(rule.failure().code(),
                         fmt::format("{}, line {}: {}", file, number, rule.failure().message()),
                         rule.failure().remedy());
        }
        made.rules_.push_back(rule.value());
    }
    return made;
}

result<tuning_rules> tuning_rules::read(const std::string &file) {
    auto text = read_file(file, max_tuning_bytes);
    if (!text) {
        return error(OMPX_ERR_ARG,
                     fmt::format("the tuning file of collectives: {}", text.failure().message()),
                     "set DIOMP_COLL_TUNING to a file that rank 0 can read, or unset it");
    }
    return parse(text.value(), file);
}

std::string tuning_rules::to_text() const {
    std::string text;
    for (tuning_rule const &rule : rules_) {
        text += coll::to_text(rule) + "\n";
    }
    return text;
}

std::optional<algorithm_choice> tuning_rules::choose(const choice_facts &facts) const {
    auto const found = std::ranges::find_if(rules_, [&](const tuning_rule &rule) {
        return rule.what == facts.what && rule.level == facts.level &&
               rule.members.contains(facts.num_members) && rule.nodes.contains(facts.num_nodes) &&
               rule.bytes.contains(facts.block_bytes);
    });
    return found == rules_.end() ? std::nullopt : std::optional(found->choice);
}

} // namespace diomp::coll
