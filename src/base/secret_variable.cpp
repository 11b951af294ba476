// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/secret_variable.h"

#include "base/secure/secret.h"

#include <cstdlib>
#include <cstring>
#include <span>
#include <unistd.h>

namespace diomp {

std::string take_secret_variable(const char *name) {
    std::string value;
    std::size_t const length = std::strlen(name);
    for (char **each = environ; each != nullptr && *each != nullptr; ++each) {
        if (std::strncmp(*each, name, length) == 0 && (*each)[length] == '=') {
            char *const text = *each + length + 1;
            std::size_t const size = std::strlen(text);
            if (value.empty()) {
                value.assign(text, size);
            }
            // An environment may hold a name twice.
            secure::erase(std::span(reinterpret_cast<unsigned char *>(text), size));
        }
    }
    ::unsetenv(name);
    return value;
}

} // namespace diomp
