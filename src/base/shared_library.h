// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A vendor's library, opened at run time: programs start on systems without it.
#pragma once

#include "base/result.h"

#include <span>
#include <string>
#include <type_traits>

namespace diomp {

/// Never unloaded: drivers have threads of their own and do not support unloading.
class shared_library {
public:
    /// Opens `path`, or if that is empty the first of `names` that exists. The error names all
    /// candidates with the loader's messages.
    static result<shared_library> open(const std::string &path, std::span<const char *const> names,
                                       const char *vendor, const char *remedy);

    /// Stores the function's address; a missing function is recorded for check().
    template <typename Function>
    void find(Function *&into, const char *symbol) {
        static_assert(std::is_function_v<Function>);
        into = reinterpret_cast<Function *>(look_up(symbol));
    }
    /// An error that names the library and all missing functions.
    [[nodiscard]] status check() const;

private:
    void *look_up(const char *symbol);

    void *handle_ = nullptr;
    std::string opened_;
    std::string missing_; ///< names of functions, separated by commas
    const char *remedy_ = "";
};

} // namespace diomp
