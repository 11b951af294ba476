// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "remote_shell.h"

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

std::string agent_command(const std::string &program, const char *library_path) {
    std::string command = "exec ";
    if (library_path != nullptr) {
        command += "env " + quote_for_shell(std::string("LD_LIBRARY_PATH=") + library_path) + " ";
    }
    return command + quote_for_shell(program) + " --agent";
}

} // namespace diomp::run
