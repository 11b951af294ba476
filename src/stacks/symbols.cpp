// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "stacks/symbols.h"

#include "base/elf_view.h"
#include "base/unique_fd.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cxxabi.h>
#include <fcntl.h>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>
#include <sys/mman.h>
#include <sys/stat.h>

namespace diomp::stacks {
namespace {

std::string demangle(const char *name) {
    int failure = 0;
    std::unique_ptr<char, void (*)(void *)> const text(
        abi::__cxa_demangle(name, nullptr, nullptr, &failure), std::free);
    return failure == 0 ? text.get() : name;
}

} // namespace

/// An ELF file of this machine's kind, mapped for reading. Other files have no symbols.
class symbols::file {
public:
    explicit file(const std::string &path) {
        unique_fd const fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
        struct stat facts{};
        if (!fd || ::fstat(fd.get(), &facts) != 0 || facts.st_size <= 0) {
            return;
        }
        auto const size = static_cast<std::size_t>(facts.st_size);
        void *const bytes = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
        if (bytes == MAP_FAILED) {
            return;
        }
        content_ = {static_cast<const char *>(bytes), size};
        view_ = elf_view(content_);
        table_ = view_.section_of_type(SHT_SYMTAB); // has more than the dynamic table
        table_ = table_ ? table_ : view_.section_of_type(SHT_DYNSYM);
        names_ = table_ ? view_.section(table_->sh_link) : std::nullopt;
    }
    ~file() {
        if (!content_.empty()) {
            ::munmap(const_cast<char *>(content_.data()), content_.size());
        }
    }
    file(const file &) = delete;
    file &operator=(const file &) = delete;

    /// The link-time address of an offset in the file.
    [[nodiscard]] std::uint64_t link_address(std::uint64_t offset) const {
        for (std::uint32_t i = 0; auto const header = view_.segment(i); ++i) {
            if (header->p_type == PT_LOAD && offset >= header->p_offset &&
                offset - header->p_offset < header->p_filesz) {
                return offset - header->p_offset + header->p_vaddr;
            }
        }
        return offset;
    }

    /// A function, and the distance of an address from its start.
    struct function {
        std::string mangled;
        std::uint64_t distance = 0;
    };
    /// nullopt if no symbol covers the address.
    [[nodiscard]] std::optional<function> find(std::uint64_t address) const {
        if (!table_ || !names_) {
            return std::nullopt;
        }
        for (std::uint64_t i = 0; auto const each = view_.entry<Elf64_Sym>(*table_, i); ++i) {
            unsigned const type = ELF64_ST_TYPE(each->st_info);
            if ((type == STT_FUNC || type == STT_GNU_IFUNC) && each->st_shndx != SHN_UNDEF &&
                address >= each->st_value &&
                address - each->st_value < std::max<std::uint64_t>(each->st_size, 1)) {
                return function{view_.text(*names_, each->st_name), address - each->st_value};
            }
        }
        return std::nullopt;
    }
    /// "main+0x1f"; "" without a symbol.
    [[nodiscard]] std::string name(std::uint64_t address) const {
        auto const found = find(address);
        return !found || found->mangled.empty()
                   ? ""
                   : fmt::format("{}+{:#x}", demangle(found->mangled.c_str()), found->distance);
    }

private:
    std::string_view content_;
    elf_view view_;
    std::optional<Elf64_Shdr> table_;
    std::optional<Elf64_Shdr> names_;
};

symbols::symbols() {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        std::istringstream words(line);
        mapping here;
        char dash = 0;
        std::string access;
        std::string device;
        std::string inode;
        words >> std::hex >> here.begin >> dash >> here.end >> access >> here.offset >> device >>
            inode;
        words >> std::ws;
        std::getline(words, here.path);
        if (access.size() > 2 && access[2] == 'x') {
            mappings_.push_back(std::move(here));
        }
    }
}

symbols::~symbols() = default;

const symbols::mapping *symbols::find(std::uintptr_t address) const {
    auto const found = std::ranges::find_if(mappings_, [address](const mapping &each) {
        return address >= each.begin && address < each.end;
    });
    return found == mappings_.end() || found->path.empty() ? nullptr : &*found;
}

symbols::file &symbols::open(const std::string &path) {
    auto &mapped = files_[path];
    if (!mapped) {
        mapped = std::make_unique<file>(path);
    }
    return *mapped;
}

std::optional<symbols::code_address> symbols::locate(std::uintptr_t address) {
    const mapping *const found = find(address);
    if (found == nullptr || found->path.front() != '/') {
        return std::nullopt;
    }
    return code_address{found->path,
                        open(found->path).link_address(address - found->begin + found->offset)};
}

std::string symbols::mangled_name(std::uintptr_t address) {
    auto const where = locate(address);
    auto const found = where ? open(where->path).find(where->offset) : std::nullopt;
    return found ? found->mangled : "";
}

std::string symbols::describe(std::uintptr_t address) {
    const mapping *const found = find(address);
    if (found == nullptr) {
        return "(unknown code)";
    }
    auto const where = locate(address);
    if (!where) {
        return fmt::format("({}+{:#x})", found->path, address - found->begin); // [vdso]
    }
    std::string const name = open(where->path).name(where->offset);
    return fmt::format("{}{}({}+{:#x})", name, name.empty() ? "" : " ", where->path, where->offset);
}

} // namespace diomp::stacks
