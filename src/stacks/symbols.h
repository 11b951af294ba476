// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Names of functions by code address, from the symbol tables of the mapped files. Includes
// functions that are not exported, which the dynamic linker cannot find.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace diomp::stacks {

/// Resolves addresses in the mappings at its construction. One thread.
class symbols {
public:
    symbols();
    ~symbols();
    symbols(const symbols &) = delete;
    symbols &operator=(const symbols &) = delete;

    /// "main+0x1f (/path/program+0x11f3)": the second offset is the argument of addr2line -e. The
    /// name is missing if the file has none for the address; "(unknown code)" outside of files.
    std::string describe(std::uintptr_t address);

    /// A file and the address in it as the linker has assigned it, the argument of addr2line -e.
    struct code_address {
        std::string path;
        std::uint64_t offset = 0;
        auto operator<=>(const code_address &) const = default;
    };
    /// nullopt for code outside of files.
    std::optional<code_address> locate(std::uintptr_t address);
    /// The function's name as the linker knows it; "" if there is none.
    std::string mangled_name(std::uintptr_t address);

private:
    class file;
    struct mapping {
        std::uintptr_t begin = 0;
        std::uintptr_t end = 0;
        std::uint64_t offset = 0;
        std::string path;
    };

    [[nodiscard]] const mapping *find(std::uintptr_t address) const;
    file &open(const std::string &path);

    std::vector<mapping> mappings_; ///< with code, ascending
    std::map<std::string, std::unique_ptr<file>> files_;
};

} // namespace diomp::stacks
