// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "stacks/call_sites.h"

#include "base/llvm_versions.h"
#include "base/run_program.h"
#include "stacks/internal/unwind.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ranges>
#include <sstream>
#include <string_view>

namespace diomp::stacks {
namespace {

/// Whether a source file belongs to the C++ interface.
bool is_interface_file(std::string_view file) {
    return file.find("/diomp/") != std::string_view::npos &&
           file.find(".hpp:") != std::string_view::npos;
}

/// Functions of the C++ interface are in this inline namespace, members const or not.
bool is_interface_function(std::string_view mangled) {
    return mangled.starts_with("_ZN5diomp2v1") || mangled.starts_with("_ZNK5diomp2v1");
}

} // namespace

bool call_site_finder::is_of_interface(std::uintptr_t address) {
    auto const known = known_.find(address);
    if (known != known_.end()) {
        return known->second;
    }
    return known_[address] = is_interface_function(symbols().mangled_name(address));
}

const void *call_site_finder::in_program(const void *site) {
    auto const direct = reinterpret_cast<std::uintptr_t>(site) - 1;
    if (!is_of_interface(direct)) {
        return site;
    }
    std::array<std::uintptr_t, 64> frames{};
    std::size_t const num_frames = unwind(frames, nullptr);
    auto const end = frames.begin() + static_cast<std::ptrdiff_t>(num_frames);
    auto found = std::find(frames.begin(), end, direct);
    while (found != end && is_of_interface(*found)) {
        ++found;
    }
    return found == end ? site : reinterpret_cast<const void *>(*found + 1);
}

std::string choose_line(const std::vector<std::string> &frames) {
    std::string_view chosen;
    for (std::string const &each : frames) {
        bool const is_known =
            !each.starts_with("??") && !each.ends_with(":?") && !each.ends_with(":0");
        if (is_known && (chosen.empty() || is_interface_file(chosen))) {
            chosen = each;
        }
    }
    std::size_t const name = chosen.rfind('/');
    chosen.remove_prefix(name == std::string_view::npos ? 0 : name + 1);
    return std::string(chosen.substr(0, chosen.find(" (discriminator")));
}

source_lines::source_lines(const std::vector<symbols::code_address> &addresses) {
    std::map<std::string, std::vector<std::uint64_t>> by_file;
    for (symbols::code_address const &each : addresses) {
        by_file[each.path].push_back(each.offset);
    }
    for (auto const &[path, offsets] : by_file) {
        read(path, offsets);
    }
}

void source_lines::read(const std::string &path, const std::vector<std::uint64_t> &offsets) {
    // All print, for each address, its number and a line per inlined call; the addr2line of
    // binutils 2.40 omits some of the latter.
    std::vector<std::vector<std::string>> tools;
    std::vector<std::string> names{"llvm-symbolizer"};
    for (llvm_version const &each : llvm_versions | std::views::reverse) {
        names.push_back(fmt::format("llvm-symbolizer-{}", each.major));
    }
    tools.reserve(names.size() + 1);
    for (std::string const &name : names) {
        tools.push_back({name, "--output-style=GNU", "--addresses", "--inlines", "--functions=none",
                         "-e", path});
    }
    tools.push_back({"addr2line", "-a", "-i", "-e", path});
    program_result done;
    for (std::vector<std::string> &words : tools) {
        for (std::uint64_t const offset : offsets) {
            words.push_back(fmt::format("{:#x}", offset));
        }
        done = run_program(std::move(words), errors_to::null);
        if (done.exit_status == 0) {
            break;
        }
    }
    std::istringstream lines(done.exit_status == 0 ? done.output : "");
    std::vector<std::string> frames;
    std::size_t index = 0; ///< of the address whose frames are read, plus 1
    auto const take = [&] {
        if (index > 0 && index <= offsets.size()) {
            lines_[{path, offsets[index - 1]}] = choose_line(frames);
        }
        frames.clear();
    };
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("0x")) {
            take();
            ++index;
        } else {
            frames.push_back(line);
        }
    }
    take();
}

std::string source_lines::line_of(const symbols::code_address &where) const {
    auto const found = lines_.find(where);
    return found == lines_.end() ? "" : found->second;
}

} // namespace diomp::stacks
