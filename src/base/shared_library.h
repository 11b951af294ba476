// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A vendor's library, opened at run time: programs start where it is not installed.
#pragma once

#include "base/result.h"

#include <span>
#include <string>
#include <type_traits>

namespace diomp {

/// Stays in the process once it is open: drivers have threads of their own and are not made to be
/// unloaded.
class shared_library {
public:
    /// Opens `path`, or if that is empty the first of `names` that is there. The error names
    /// everything that was tried, with the loader's words.
    static result<shared_library> open(const std::string &path, std::span<const char *const> names,
                                       const char *vendor, const char *remedy);

    /// Stores the function; one that is missing is remembered for check().
    template <typename Function>
    void find(Function *&into, const char *symbol) {
        static_assert(std::is_function_v<Function>);
        into = reinterpret_cast<Function *>(look_up(symbol));
    }
    /// An error that names the library and all functions that it lacks.
    [[nodiscard]] status check() const;

private:
    void *look_up(const char *symbol);

    void *handle_ = nullptr;
    std::string opened_;
    std::string missing_; ///< names of functions, separated by commas
    const char *remedy_ = "";
};

} // namespace diomp
