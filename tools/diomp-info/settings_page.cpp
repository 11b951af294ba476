// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "settings_page.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>

namespace diomp::info {
namespace {

/// Breaks text into lines of at most `width` columns, each after `indent` blanks.
std::string wrapped(std::string_view text, std::size_t width, std::size_t indent) {
    std::string lines;
    while (!text.empty()) {
        std::size_t length = std::min(width, text.size());
        if (length < text.size()) {
            std::size_t const blank = text.rfind(' ', length);
            length = blank == std::string_view::npos ? length : blank;
        }
        lines += std::string(indent, ' ');
        lines += text.substr(0, length);
        lines += '\n';
        text.remove_prefix(length);
        text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    }
    return lines;
}

/// Escapes bars, which would end the cell of a Markdown table.
std::string cell(std::string_view text) {
    std::string escaped;
    for (char const character : text) {
        if (character == '|') {
            escaped += '\\';
        }
        escaped += character;
    }
    return escaped;
}

bool is_set(setting_row const &row, const settings &values) {
    return row.value.show(values) != row.value.show(settings{});
}

std::string value_line(setting_row const &row, const settings &values) {
    std::string const now = row.value.show(values);
    return fmt::format("  {} = {}{}\n", row.name, now.empty() ? "(empty)" : now,
                       is_set(row, values) ? "  (set)" : "");
}

} // namespace

result<environment> read_environment() {
    environment here;
    auto values = read_settings(here.unknown);
    if (!values) {
        return values.take_failure();
    }
    here.values = values.take();
    return here;
}

std::string settings_markdown() {
    std::string page =
        "# Settings\n\n"
        "Made by `diomp-info --settings-markdown` from the table in `src/config`; do "
        "not "
        "edit.\n\n"
        "Environment variables, read once when a rank starts. `diomp-run` hands its environment to "
        "all ranks. A malformed\n"
        "value ends the program at once and names what is allowed; an unknown `DIOMP_` variable is "
        "reported. Sizes are\n"
        "bytes, or take K, M, G, T (powers of 1024).\n\n"
        "| variable | values | default | meaning |\n"
        "|---|---|---|---|\n";
    for (setting_row const &row : setting_rows()) {
        page +=
            fmt::format("| `{}` | {} | {} | {} |\n", row.name, cell(row.type),
                        *row.default_value == '\0' ? "" : fmt::format("`{}`", row.default_value),
                        cell(row.help));
    }
    return page;
}

std::string settings_text(const settings &values) {
    std::string text;
    for (setting_row const &row : setting_rows()) {
        text += value_line(row, values);
        text += fmt::format("      {}; default {}\n", row.type,
                            *row.default_value == '\0' ? "(empty)" : row.default_value);
        text += wrapped(row.help, 90, 6);
    }
    return text;
}

std::string set_text(const settings &values) {
    std::string text;
    for (setting_row const &row : setting_rows()) {
        text += is_set(row, values) ? value_line(row, values) : "";
    }
    return text.empty() ? "  all have their defaults\n" : text;
}

nlohmann::json settings_json(const settings &values) {
    nlohmann::json list = nlohmann::json::array();
    for (setting_row const &row : setting_rows()) {
        list.push_back({{"name", row.name},
                        {"type", row.type},
                        {"default", row.default_value},
                        {"value", row.value.show(values)},
                        {"help", row.help}});
    }
    return list;
}

int print_settings(bool as_json) {
    auto const here = read_environment();
    if (!here) {
        fmt::print(stderr, "diomp-info: {}\n  {}\n", here.failure().message(),
                   here.failure().remedy());
        return 1;
    }
    settings const &values = here.value().values;
    fmt::print("{}", as_json ? settings_json(values).dump(2) + "\n" : settings_text(values));
    return 0;
}

} // namespace diomp::info
