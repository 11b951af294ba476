// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/shared_library.h"

#include <dlfcn.h>
#include <vector>

namespace diomp {

result<shared_library> shared_library::open(const std::string &path,
                                            std::span<const char *const> names, const char *vendor,
                                            const char *remedy) {
    std::vector<std::string> candidates;
    if (path.empty()) {
        candidates.assign(names.begin(), names.end());
    } else {
        candidates.push_back(path);
    }
    std::string failures;
    for (std::string const &candidate : candidates) {
        if (void *const handle = ::dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL)) {
            shared_library opened;
            opened.handle_ = handle;
            opened.opened_ = candidate;
            opened.remedy_ = remedy;
            return opened;
        }
        char const *const why = ::dlerror();
        failures += failures.empty() ? "" : "; ";
        failures += why == nullptr ? candidate + ": cannot be loaded" : why;
    }
    return error(OMPX_ERR_UNSUPPORTED, std::string(vendor) + " cannot be loaded: " + failures,
                 remedy);
}

void *shared_library::look_up(const char *symbol) {
    void *const found = ::dlsym(handle_, symbol);
    if (found == nullptr) {
        missing_ += missing_.empty() ? "" : ", ";
        missing_ += symbol;
    }
    return found;
}

status shared_library::check() const {
    if (missing_.empty()) {
        return {};
    }
    return error(OMPX_ERR_UNSUPPORTED, opened_ + " lacks " + missing_, remedy_);
}

} // namespace diomp
