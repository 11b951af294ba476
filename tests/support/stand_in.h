// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What stand-ins for vendors' libraries are told by the environment.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

namespace stand_in {

inline bool is_set_to(const char *variable, const char *value) {
    const char *const set = std::getenv(variable);
    return set != nullptr && std::strcmp(set, value) == 0;
}

inline int number_of(const char *variable, int otherwise) {
    const char *const set = std::getenv(variable);
    return set == nullptr ? otherwise : std::atoi(set);
}

/// A variable with NAME[#N]=C: calls of NAME (the Nth only) return the code C.
class failure {
public:
    explicit failure(const char *variable) : variable_(variable) {}

    /// What is demanded of this call; 0: nothing.
    int of(const std::string &function) {
        const char *const now = std::getenv(variable_);
        std::string const text = now == nullptr ? "" : now;
        if (text != seen_) {
            seen_ = text;
            calls_ = 0;
        }
        std::size_t const equals = text.find('=');
        std::size_t const hash = text.find('#');
        if (equals == std::string::npos || text.substr(0, std::min(hash, equals)) != function) {
            return 0;
        }
        ++calls_;
        bool const is_other =
            hash != std::string::npos && std::atoi(text.c_str() + hash + 1) != calls_;
        return is_other ? 0 : std::atoi(text.c_str() + equals + 1);
    }

    /// Nothing was demanded at the last call.
    [[nodiscard]] bool empty() const { return seen_.empty(); }

private:
    const char *variable_;
    std::string seen_; ///< the variable at the last call
    int calls_ = 0;    ///< of NAME since then
};

} // namespace stand_in
