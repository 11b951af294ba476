// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "stacks/symbols.h"

#include "base/unique_fd.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <cxxabi.h>
#include <elf.h>
#include <fcntl.h>
#include <fstream>
#include <optional>
#include <span>
#include <sstream>
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

/// An ELF file of this machine's kind, mapped for reading. What is no such file has no symbols.
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
        content_ = {static_cast<const std::byte *>(bytes), size};
        read_tables();
    }
    ~file() {
        if (!content_.empty()) {
            ::munmap(const_cast<std::byte *>(content_.data()), content_.size());
        }
    }
    file(const file &) = delete;
    file &operator=(const file &) = delete;

    /// The address that the file itself has for a place in it.
    [[nodiscard]] std::uint64_t link_address(std::uint64_t offset) const {
        for (const Elf64_Phdr &part : parts_) {
            if (part.p_type == PT_LOAD && offset >= part.p_offset &&
                offset - part.p_offset < part.p_filesz) {
                return offset - part.p_offset + part.p_vaddr;
            }
        }
        return offset;
    }

    /// "main+0x1f"; "" if no symbol covers the address.
    [[nodiscard]] std::string name(std::uint64_t address) const {
        const Elf64_Sym *best = nullptr;
        for (const Elf64_Sym &each : table_) {
            unsigned const type = ELF64_ST_TYPE(each.st_info);
            if ((type == STT_FUNC || type == STT_GNU_IFUNC) && each.st_shndx != SHN_UNDEF &&
                address >= each.st_value &&
                address - each.st_value < std::max<std::uint64_t>(each.st_size, 1)) {
                best = &each;
                break;
            }
        }
        if (best == nullptr || best->st_name >= names_.size()) {
            return "";
        }
        const auto *const mangled = reinterpret_cast<const char *>(names_.data() + best->st_name);
        if (std::memchr(mangled, '\0', names_.size() - best->st_name) == nullptr) {
            return "";
        }
        return fmt::format("{}+{:#x}", demangle(mangled), address - best->st_value);
    }

private:
    /// A table of the file, if all of it is there and aligned.
    template <typename Entry>
    [[nodiscard]] std::span<const Entry> table_at(std::uint64_t offset, std::uint64_t count) const {
        if (offset > content_.size() || count > (content_.size() - offset) / sizeof(Entry) ||
            offset % alignof(Entry) != 0) {
            return {};
        }
        return {reinterpret_cast<const Entry *>(content_.data() + offset), count};
    }

    void read_tables() {
        auto const headers = table_at<Elf64_Ehdr>(0, 1);
        if (headers.empty() || std::memcmp(headers[0].e_ident, ELFMAG, SELFMAG) != 0 ||
            headers[0].e_ident[EI_CLASS] != ELFCLASS64) {
            return;
        }
        parts_ = table_at<Elf64_Phdr>(headers[0].e_phoff, headers[0].e_phnum);
        auto const sections = table_at<Elf64_Shdr>(headers[0].e_shoff, headers[0].e_shnum);
        for (unsigned const type :
             {unsigned{SHT_DYNSYM}, unsigned{SHT_SYMTAB}}) { // the larger one last
            auto const found = std::ranges::find(sections, type, &Elf64_Shdr::sh_type);
            if (found == sections.end() || found->sh_link >= sections.size()) {
                continue;
            }
            const Elf64_Shdr &names = sections[found->sh_link];
            table_ = table_at<Elf64_Sym>(found->sh_offset, found->sh_size / sizeof(Elf64_Sym));
            names_ = table_at<std::byte>(names.sh_offset, names.sh_size);
        }
    }

    std::span<const std::byte> content_;
    std::span<const Elf64_Phdr> parts_;
    std::span<const Elf64_Sym> table_;
    std::span<const std::byte> names_;
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

std::string symbols::describe(std::uintptr_t address) {
    auto const found = std::ranges::find_if(mappings_, [address](const mapping &each) {
        return address >= each.begin && address < each.end;
    });
    if (found == mappings_.end() || found->path.empty()) {
        return "(unknown code)";
    }
    if (found->path.front() != '/') {
        return fmt::format("({}+{:#x})", found->path, address - found->begin); // [vdso]
    }
    auto &mapped = files_[found->path];
    if (!mapped) {
        mapped = std::make_unique<file>(found->path);
    }
    std::uint64_t const inside = mapped->link_address(address - found->begin + found->offset);
    std::string const name = mapped->name(inside);
    return fmt::format("{}{}({}+{:#x})", name, name.empty() ? "" : " ", found->path, inside);
}

} // namespace diomp::stacks
