// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "program.h"

#include "options.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

namespace diomp::run {
namespace {

/// Returns 0, or the errno for which `path` cannot be executed.
int executable(const std::string &path) {
    struct stat info{};
    if (stat(path.c_str(), &info) != 0) {
        return errno;
    }
    if (S_ISDIR(info.st_mode)) {
        return EISDIR;
    }
    return access(path.c_str(), X_OK) == 0 ? 0 : errno;
}

program_lookup lookup_failure(const std::string &path, int error) {
    if (error == ENOENT || error == ENOTDIR) {
        return {{}, status_not_found, fmt::format("there is no program {}", path)};
    }
    return {{},
            status_cannot_execute,
            fmt::format("cannot execute {}: {}", path,
                        error == EACCES ? "no execute permission" : std::strerror(error))};
}

} // namespace

program_lookup find_program(const std::string &name, const std::string &search_path) {
    if (name.find('/') != std::string::npos) {
        int const error = executable(name);
        return error == 0 ? program_lookup{name, 0, {}} : lookup_failure(name, error);
    }
    std::string found_but_unusable;
    int why = 0;
    std::string_view rest = search_path;
    while (!name.empty()) {
        auto const colon = rest.find(':');
        std::string directory(rest.substr(0, colon));
        std::string path = (directory.empty() ? "." : std::move(directory)) + "/" + name;
        int const error = executable(path);
        if (error == 0) {
            return {std::move(path), 0, {}};
        }
        if (error != ENOENT && error != ENOTDIR && error != EISDIR && why == 0) {
            found_but_unusable = std::move(path);
            why = error;
        }
        if (colon == std::string_view::npos) {
            break;
        }
        rest.remove_prefix(colon + 1);
    }
    if (why != 0) {
        return lookup_failure(found_but_unusable, why);
    }
    std::string message = fmt::format("cannot find '{}' in PATH", name);
    if (!name.empty() && executable("./" + name) == 0) {
        message += fmt::format("; did you mean ./{}?", name);
    }
    return {{}, status_not_found, std::move(message)};
}

} // namespace diomp::run
