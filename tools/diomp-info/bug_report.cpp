// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bug_report.h"

#include "base/read_file.h"
#include "base/run_program.h"
#include "base/unique_fd.h"
#include "runtime_library.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <pwd.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <vector>

namespace diomp::info {
namespace {

constexpr std::size_t min_secret_digits = 32;
constexpr std::size_t max_error_lines = 200;
constexpr std::string_view hidden = "(not shown)";

bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool is_hexadecimal(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/// Replaces `name` where it is a word of its own.
void replace_word(std::string &text, std::string_view name, std::string_view by) {
    if (name.empty()) {
        return;
    }
    for (std::size_t at = 0; (at = text.find(name, at)) != std::string::npos;) {
        std::size_t const end = at + name.size();
        bool const is_whole =
            (at == 0 || !is_word(text[at - 1])) && (end == text.size() || !is_word(text[end]));
        if (is_whole) {
            text.replace(at, name.size(), by);
        }
        at += is_whole ? by.size() : name.size();
    }
}

std::string without_long_numbers(std::string_view text) {
    std::string kept;
    while (!text.empty()) {
        auto const end = std::find_if_not(text.begin(), text.end(), is_hexadecimal);
        auto const num_digits = static_cast<std::size_t>(end - text.begin());
        kept += num_digits < min_secret_digits ? text.substr(0, num_digits) : "(a long number)";
        text.remove_prefix(num_digits);
        if (!text.empty()) {
            kept += text.front();
            text.remove_prefix(1);
        }
    }
    return kept;
}

/// What a URL says of user and password before its host: `//user:word@host`.
std::string without_url_credentials(std::string_view text) {
    constexpr std::string_view ends = "/?#\"' \t\n";
    std::string kept;
    for (std::size_t at = 0; (at = text.find("://")) != std::string_view::npos;) {
        at += 3;
        kept += text.substr(0, at);
        text.remove_prefix(at);
        auto const authority = text.substr(0, text.find_first_of(ends));
        if (auto const host = authority.rfind('@'); host != std::string_view::npos) {
            kept += hidden;
            text.remove_prefix(host);
        }
    }
    return kept.append(text);
}

/// Values that a variable of this process has and that may be secrets: programs print them, too.
std::vector<std::string> secret_values() {
    constexpr std::size_t min_length = 4; // shorter ones are switches, such as 1 and on
    std::vector<std::string> values;
    for (char **entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        std::string_view const text = *entry;
        auto const name = text.substr(0, text.find('='));
        std::string const value(text.substr(std::min(name.size() + 1, text.size())));
        // A file's name is no secret.
        if (may_be_secret(name) && value.size() >= min_length &&
            ::access(value.c_str(), F_OK) != 0) {
            values.push_back(value);
        }
    }
    // One may be part of another.
    std::ranges::sort(values, std::ranges::greater(), &std::string::size);
    return values;
}

report_names own_names() {
    report_names own;
    if (const passwd *const entry = getpwuid(getuid()); entry != nullptr) {
        own.user = entry->pw_name;
        own.home = entry->pw_dir;
    }
    utsname system{};
    if (uname(&system) == 0) {
        own.host = system.nodename;
    }
    // Names that are part of the system are no secrets, and replacing them would hide paths.
    if (own.user == "root") {
        own.user.clear();
    }
    if (own.home == "/") {
        own.home.clear();
    }
    if (own.host == "localhost") {
        own.host.clear();
    }
    own.secrets = secret_values();
    return own;
}

std::string section(std::string_view title, std::string_view text) {
    return fmt::format("== {}\n{}{}\n", title, text, text.ends_with('\n') ? "" : "\n");
}

std::string output_of(const std::vector<std::string> &words, std::string_view title) {
    auto const done = run_program(words, errors_to::output);
    std::string text = done.output;
    if (done.exit_status != 0) {
        text += fmt::format("(exit status {})\n", done.exit_status);
    }
    return section(title, text);
}

std::string own_output(const char *option) {
    return output_of({own_program().string(), option}, fmt::format("diomp-info {}", option));
}

std::string first_line_of(const char *path) {
    auto const text = read_file(path);
    return text ? text.value().substr(0, text.value().find('\n')) : std::string("not found");
}

std::string describe_system() {
    utsname system{};
    uname(&system);
    std::string text =
        fmt::format("kernel: {} {} {}\n", system.sysname, system.release, system.machine);
    text += fmt::format("distribution: {}\n", first_line_of("/etc/os-release"));
    text += fmt::format("NVIDIA driver: {}\n", first_line_of("/proc/driver/nvidia/version"));
    text += fmt::format("AMD driver: {}\n", first_line_of("/sys/module/amdgpu/version"));
    return section("system", text);
}

std::string describe_environment() {
    constexpr std::array<std::string_view, 14> prefixes{
        "DIOMP_", "OMP_",  "OMPX_",  "KMP_",  "LIBOMPTARGET_", "UCX_",  "GASNET_",
        "GASPI_", "PMIX_", "SLURM_", "CUDA_", "ROCR_",         "PATH=", "LD_LIBRARY_PATH="};
    std::vector<std::string> lines;
    for (char **entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        std::string_view const text = *entry;
        if (std::ranges::none_of(prefixes, [&](auto each) { return text.starts_with(each); })) {
            continue;
        }
        auto const name = text.substr(0, text.find('='));
        lines.push_back(may_be_secret(name) ? fmt::format("{}=(set, not shown)\n", name)
                                            : fmt::format("{}\n", text));
    }
    std::ranges::sort(lines);
    std::string all;
    for (std::string const &line : lines) {
        all += line;
    }
    return section("environment", all);
}

std::string last_lines(std::string text) {
    std::size_t at = text.size();
    for (std::size_t count = 0; at > 0 && count <= max_error_lines; ++count) {
        at = text.rfind('\n', at - 1);
        if (at == std::string::npos) {
            return text;
        }
    }
    return at == 0 ? text : "...\n" + text.substr(at + 1);
}

result<std::string> describe_errors(const std::string &file) {
    if (file.empty()) {
        return section("errors", "none given; diomp-run -n N ./program 2> errors.txt and "
                                 "diomp-info --bug-report --errors errors.txt adds them");
    }
    auto text = read_file(file == "-" ? "/dev/stdin" : file);
    DIOMP_TRY(text);
    return section("errors", last_lines(text.value()));
}

bool write_private_file(const std::string &path, std::string_view text) {
    unique_fd const file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!file.valid()) {
        return false;
    }
    while (!text.empty()) {
        ssize_t const written = ::write(file.get(), text.data(), text.size());
        if (written < 0) {
            return false;
        }
        text.remove_prefix(static_cast<std::size_t>(written));
    }
    return true;
}

} // namespace

std::string redact(std::string_view text, const report_names &whose) {
    std::string kept = without_url_credentials(text);
    for (std::string const &secret : whose.secrets) {
        for (std::size_t at = 0; (at = kept.find(secret, at)) != std::string::npos;) {
            kept.replace(at, secret.size(), hidden);
            at += hidden.size();
        }
    }
    replace_word(kept, whose.home, "~");
    replace_word(kept, whose.user, "USER");
    replace_word(kept, whose.host, "HOST");
    return without_long_numbers(kept);
}

bool may_be_secret(std::string_view name) {
    constexpr std::array<std::string_view, 9> words{"SECRET",     "TOKEN", "KEY", "COOKIE", "PASS",
                                                    "CREDENTIAL", "JWT",   "PWD", "AUTH"};
    std::string upper(name);
    std::ranges::transform(upper, upper.begin(),
                           [](char c) { return c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c; });
    return std::ranges::any_of(words, [&](auto each) { return upper.find(each) != upper.npos; });
}

int write_bug_report(const bug_report_options &options) {
    if (inside_job()) {
        fmt::print(stderr,
                   "diomp-info: --bug-report starts jobs itself; run it without diomp-run\n");
        return 1;
    }
    auto const errors = describe_errors(options.errors);
    if (!errors) {
        fmt::print(stderr, "diomp-info: {}\n", errors.failure().message());
        return 1;
    }
    std::string text = describe_system() + own_output("--build") + own_output("--doctor") +
                       output_of({own_program().string()}, "diomp-info") +
                       own_output("--topology") + own_output("--settings") +
                       describe_environment() + errors.value();
    text = redact(text, own_names());
    if (options.file == "-") {
        fmt::print("{}", text);
        return 0;
    }
    if (!write_private_file(options.file, text)) {
        fmt::print(stderr, "diomp-info: {} cannot be written: {}\n", options.file,
                   std::strerror(errno));
        return 1;
    }
    fmt::print(
        "{}: read it before you send it; names of user and host, and long numbers, are left out\n",
        options.file);
    return 0;
}

} // namespace diomp::info
