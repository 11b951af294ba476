// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "remote_shell.h"

#include "core/options.h"
#include "core/program.h"

#include <cstdlib>

namespace diomp::run {

result<std::vector<std::string>> split_words(std::string_view text) {
    std::vector<std::string> words;
    bool in_word = false;
    char quote = '\0';
    for (std::size_t i = 0; i < text.size(); ++i) {
        char const c = text[i];
        if (quote == '\0' && (c == ' ' || c == '\t' || c == '\n')) {
            in_word = false;
            continue;
        }
        if (!in_word) {
            words.emplace_back();
            in_word = true;
        }
        if (c == quote) {
            quote = '\0';
        } else if (quote == '\0' && (c == '\'' || c == '"')) {
            quote = c;
        } else if (c == '\\' && quote != '\'' && i + 1 < text.size()) {
            words.back() += text[++i];
        } else {
            words.back() += c;
        }
    }
    if (quote != '\0') {
        return error(OMPX_ERR_ARG, "a quote is not closed in: " + std::string(text));
    }
    if (words.empty()) {
        return error(OMPX_ERR_ARG, "the remote shell command is empty");
    }
    return words;
}

result<shell_command> find_remote_shell(const std::string &text, int &exit_status) {
    auto words = split_words(text);
    if (!words) {
        exit_status = status_usage;
        return error(OMPX_ERR_ARG, "--rsh: " + words.failure().message());
    }
    const char *const path = std::getenv("PATH");
    program_lookup found = find_program(words.value().front(), path != nullptr ? path : "");
    if (found.exit_status != 0) {
        exit_status = found.exit_status;
        return error(OMPX_ERR_ARG, "remote shell: " + found.message,
                     "--rsh or DIOMP_RSH names another");
    }
    return shell_command{words.take(), std::move(found.path)};
}

std::string quote_for_shell(std::string_view text) {
    std::string quoted = "'";
    for (char const c : text) {
        if (c == '\'') {
            quoted += "'\\''";
        } else {
            quoted += c;
        }
    }
    return quoted + "'";
}

std::string remote_command(const std::string &program, const std::vector<std::string> &arguments,
                           const char *library_path) {
    std::string command = "exec ";
    if (library_path != nullptr) {
        command += "env " + quote_for_shell(std::string("LD_LIBRARY_PATH=") + library_path) + " ";
    }
    command += quote_for_shell(program);
    for (const std::string &each : arguments) {
        command += " " + quote_for_shell(each);
    }
    return command;
}

} // namespace diomp::run
