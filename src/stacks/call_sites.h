// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Call sites in the program, with file and line (DIOMP_STATS=callsites).
#pragma once

#include "stacks/symbols.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace diomp::stacks {

/// Finds the program's call that led to a call of the C interface, past functions of the C++
/// interface that the compiler has not inlined. The caller locks.
class call_site_finder {
public:
    /// `site` is the return address of a public function that the calling thread is in; the result
    /// is a return address, too.
    const void *in_program(const void *site);

private:
    [[nodiscard]] bool is_of_interface(std::uintptr_t address);

    std::map<std::uintptr_t, bool> known_; ///< key: an address in a function
};

/// Files and lines by code addresses, from debug information. Asks llvm-symbolizer or addr2line;
/// without these, and without debug information, there are none. Blocks until they have ended.
class source_lines {
public:
    /// One run of the tool per file.
    explicit source_lines(const std::vector<symbols::code_address> &addresses);
    /// "app.c:17"; "" if unknown. Of code that was inlined, the innermost line that is not in the
    /// C++ interface.
    [[nodiscard]] std::string line_of(const symbols::code_address &where) const;

private:
    void read(const std::string &path, const std::vector<std::uint64_t> &offsets);

    std::map<symbols::code_address, std::string> lines_;
};

/// The line of a position from the tool's lines "FILE:LINE", innermost first; "" if unknown.
[[nodiscard]] std::string choose_line(const std::vector<std::string> &frames);

} // namespace diomp::stacks
