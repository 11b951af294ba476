// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tables of an ELF file in memory. Reads past its end return nothing: such files are untrusted
// input.
#pragma once

#include <cstdint>
#include <cstring>
#include <elf.h>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace diomp {

/// Supports 64-bit little-endian files; empty for others. The bytes must outlive the view.
class elf_view {
public:
    elf_view() = default;
    explicit elf_view(std::string_view bytes) : bytes_(bytes) {
        auto const header = at<Elf64_Ehdr>(0);
        if (header && std::memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
            header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_ident[EI_DATA] == ELFDATA2LSB &&
            header->e_shoff <= bytes_.size() &&
            (bytes_.size() - header->e_shoff) / sizeof(Elf64_Shdr) >= header->e_shnum) {
            header_ = *header;
        }
    }

    template <typename T>
    [[nodiscard]] std::optional<T> at(std::uint64_t offset) const {
        if (offset > bytes_.size() || bytes_.size() - offset < sizeof(T)) {
            return {};
        }
        T value;
        std::memcpy(&value, bytes_.data() + offset, sizeof value);
        return value;
    }
    /// Entry `index` of the table in a section.
    template <typename T>
    [[nodiscard]] std::optional<T> entry(const Elf64_Shdr &table, std::uint64_t index) const {
        return index < table.sh_size / sizeof(T) ? at<T>(table.sh_offset + index * sizeof(T))
                                                 : std::nullopt;
    }
    [[nodiscard]] std::optional<Elf64_Phdr> segment(std::uint32_t index) const {
        return index < header_.e_phnum
                   ? at<Elf64_Phdr>(header_.e_phoff + std::uint64_t{index} * sizeof(Elf64_Phdr))
                   : std::nullopt;
    }
    [[nodiscard]] std::optional<Elf64_Shdr> section(std::uint32_t index) const {
        return index < header_.e_shnum
                   ? at<Elf64_Shdr>(header_.e_shoff + std::uint64_t{index} * sizeof(Elf64_Shdr))
                   : std::nullopt;
    }
    /// The first section of this type.
    [[nodiscard]] std::optional<Elf64_Shdr> section_of_type(std::uint32_t type) const {
        for (std::uint32_t i = 0; auto const found = section(i); ++i) {
            if (found->sh_type == type) {
                return found;
            }
        }
        return {};
    }
    /// The libraries that the file is linked with (DT_NEEDED).
    [[nodiscard]] std::vector<std::string> needed() const {
        std::vector<std::string> found;
        auto const table = section_of_type(SHT_DYNAMIC);
        auto const names = table ? section(table->sh_link) : std::nullopt;
        for (std::uint64_t i = 0; names; ++i) {
            auto const each = entry<Elf64_Dyn>(*table, i);
            if (!each || each->d_tag == DT_NULL) {
                break;
            }
            if (each->d_tag == DT_NEEDED) {
                found.push_back(text(*names, each->d_un.d_val));
            }
        }
        return found;
    }
    [[nodiscard]] std::string text(const Elf64_Shdr &table, std::uint64_t offset) const {
        std::uint64_t const begin = table.sh_offset + offset;
        if (begin >= bytes_.size()) {
            return {};
        }
        return std::string(bytes_.substr(begin, bytes_.substr(begin).find('\0')));
    }

private:
    std::string_view bytes_;
    Elf64_Ehdr header_{}; ///< all zero if the file is not supported
};

} // namespace diomp
