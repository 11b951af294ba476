// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "rank_environment.h"

#include "base/llvm_versions.h"
#include "launch/local/protocol.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <string_view>

namespace diomp::run {
namespace {

bool set_by_launcher(std::string_view name) {
    return name.starts_with("DIOMP_LAUNCH_") || name == launch::local::user_rank_variable;
}

std::string_view name_of(std::string_view variable) {
    return variable.substr(0, variable.find('='));
}

bool contains_name(const named_settings &settings, std::string_view name) {
    return std::ranges::any_of(settings, [name](const auto &each) { return each.first == name; });
}

} // namespace

named_settings
explicit_settings(const std::vector<std::pair<std::string, std::optional<std::string>>> &given) {
    named_settings settings;
    for (const auto &option : given) {
        std::erase_if(settings, [&option](const auto &each) { return each.first == option.first; });
        if (option.second.has_value()) {
            settings.emplace_back(option.first, *option.second);
        }
    }
    return settings;
}

named_settings
forwarded_settings(char *const *own,
                   const std::vector<std::pair<std::string, std::optional<std::string>>> &given) {
    named_settings settings = explicit_settings(given);
    for (char *const *each = own; *each != nullptr; ++each) {
        std::string_view const variable(*each);
        std::string_view const name = name_of(variable);
        bool const is_requested =
            std::ranges::any_of(given, [name](const auto &option) { return option.first == name; });
        if (variable.size() > name.size() && !set_by_launcher(name) &&
            !contains_name(settings, name) &&
            (name.starts_with("DIOMP_") || name == "LD_LIBRARY_PATH" || is_requested)) {
            settings.emplace_back(name, variable.substr(name.size() + 1));
        }
    }
    return settings;
}

std::vector<std::string> rank_environment(char *const *own, const named_settings &settings,
                                          const std::string &libraries) {
    constexpr std::string_view library_path = "LD_LIBRARY_PATH";
    std::vector<std::string> variables;
    bool has_libraries = libraries.empty();
    auto const add = [&](std::string_view name, std::string_view value) {
        if (!libraries.empty() && name == library_path) {
            has_libraries = true;
            variables.push_back(
                fmt::format("{}={}{}{}", name, libraries, value.empty() ? "" : ":", value));
        } else {
            variables.push_back(fmt::format("{}={}", name, value));
        }
    };
    for (char *const *each = own; *each != nullptr; ++each) {
        std::string_view const variable(*each);
        std::string_view const name = name_of(variable);
        if (set_by_launcher(name) || contains_name(settings, name)) {
            continue;
        }
        if (variable.size() == name.size()) {
            variables.emplace_back(variable); // has no '=': passed on unchanged
        } else {
            add(name, variable.substr(name.size() + 1));
        }
    }
    for (const auto &[name, value] : settings) {
        add(name, value);
    }
    if (!has_libraries) {
        add(library_path, "");
    }
    return variables;
}

std::string libomptarget_folder() {
    std::error_code failure;
    auto const self = std::filesystem::read_symlink("/proc/self/exe", failure);
    auto const folder = self.parent_path() / DIOMP_BIN_TO_LIB / "diomp";
    return !failure && !installed_llvm_versions(folder).empty() ? folder.lexically_normal().string()
                                                                : std::string();
}

double peer_timeout(const named_settings &settings) {
    constexpr double default_s = 30;
    for (const auto &[name, value] : settings) {
        if (name == "DIOMP_TIMEOUT") {
            double const given = std::strtod(value.c_str(), nullptr);
            return given > 0 && given < 1e9 ? given : default_s;
        }
    }
    return default_s;
}

status make_output_directory(const std::string &path) {
    std::error_code failure;
    if (!path.empty()) {
        std::filesystem::create_directories(path, failure);
    }
    return failure ? status(system_error("cannot make the directory " + path, failure.value()))
                   : status();
}

result<output_ends> open_output_files(int rank, const std::string &directory) {
    output_ends ends;
    for (auto [end, kind] : {std::pair(&ends.out, "out"), std::pair(&ends.err, "err")}) {
        std::string const path = fmt::format("{}/rank-{}.{}", directory, rank, kind);
        *end = unique_fd(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
        if (!*end) {
            return system_error("cannot write " + path, errno);
        }
    }
    return ends;
}

} // namespace diomp::run
