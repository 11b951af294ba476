// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/remote/effects.h"

#include "base/elf_view.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>

namespace diomp::offload::remote {
namespace {

constexpr std::uint32_t max_libraries = 1000;

/// Map from version index to the library that provides it.
std::map<std::uint16_t, std::string> libraries_of(const elf_view &file) {
    std::map<std::uint16_t, std::string> libraries;
    auto const needs = file.section_of_type(SHT_GNU_verneed);
    auto const texts = needs ? file.section(needs->sh_link) : std::nullopt;
    if (!texts) {
        return libraries;
    }
    std::uint64_t offset = needs->sh_offset;
    for (std::uint32_t i = 0; i < std::min<std::uint32_t>(needs->sh_info, max_libraries); ++i) {
        auto const need = file.at<Elf64_Verneed>(offset);
        if (!need) {
            break;
        }
        std::uint64_t version_offset = offset + need->vn_aux;
        for (unsigned k = 0; k < need->vn_cnt; ++k) {
            auto const version = file.at<Elf64_Vernaux>(version_offset);
            if (!version) {
                break;
            }
            libraries[version->vna_other & 0x7fffU] = file.text(*texts, need->vn_file);
            version_offset += version->vna_next;
        }
        if (need->vn_next == 0) {
            break;
        }
        offset += need->vn_next;
    }
    return libraries;
}

bool has_no_side_effects(const std::string &name, const std::string &library) {
    if (library.starts_with("libm.so")) {
        return true;
    }
    if (library.starts_with("libomp.so")) {
        // omp_display_env and omp_display_affinity print.
        return !name.starts_with("omp_display");
    }
    if (library.starts_with("libc.so") || library.empty()) {
        static constexpr std::array<std::string_view, 9> harmless{"memcpy",
                                                                  "memmove",
                                                                  "memset",
                                                                  "memcmp",
                                                                  "__cxa_finalize",
                                                                  "__stack_chk_fail",
                                                                  "__gmon_start__",
                                                                  "_ITM_deregisterTMCloneTable",
                                                                  "_ITM_registerTMCloneTable"};
        return std::ranges::find(harmless, name) != harmless.end();
    }
    return false;
}

} // namespace

bool only_changes_memory(std::string_view image) {
    elf_view const file(image);
    auto const symbols = file.section_of_type(SHT_DYNSYM);
    auto const names = symbols ? file.section(symbols->sh_link) : std::nullopt;
    if (!names) {
        return false;
    }
    auto const versions = file.section_of_type(SHT_GNU_versym);
    auto const libraries = libraries_of(file);
    std::uint64_t const count = symbols->sh_size / sizeof(Elf64_Sym);
    for (std::uint64_t i = 1; i < count; ++i) {
        auto const symbol = file.at<Elf64_Sym>(symbols->sh_offset + i * sizeof(Elf64_Sym));
        if (!symbol) {
            return false;
        }
        if (symbol->st_shndx != SHN_UNDEF) {
            continue;
        }
        auto const version = versions ? file.at<std::uint16_t>(versions->sh_offset + i * 2)
                                      : std::optional<std::uint16_t>(0);
        auto const library = libraries.find(version.value_or(0) & 0x7fffU);
        if (!has_no_side_effects(file.text(*names, symbol->st_name),
                                 library == libraries.end() ? std::string() : library->second)) {
            return false;
        }
    }
    return true;
}

} // namespace diomp::offload::remote
