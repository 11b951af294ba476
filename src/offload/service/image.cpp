// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/service/image.h"

#include "base/elf_view.h"
#include "offload/service/image_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <link.h>
#include <unistd.h>

namespace diomp::offload::service {

namespace {

std::string content_of(const std::string &file) {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

std::string loader_error() {
    char const *const why = ::dlerror();
    return why != nullptr ? why : "?";
}

/// Loads a copy in a temporary file, for systems that do not execute code in a memfd
/// (vm.memfd_noexec, SELinux). The file is unlinked before this returns.
void *open_as_file(const std::string &file) {
    std::error_code failure;
    auto const folder = std::filesystem::temp_directory_path(failure);
    std::string name = (failure ? "/tmp" : folder.string()) + "/diomp-image-XXXXXX";
    unique_fd const fd(::mkostemp(name.data(), O_CLOEXEC));
    if (!fd.valid()) {
        return nullptr;
    }
    std::string const content = content_of(file);
    void *const handle =
        ::write(fd.get(), content.data(), content.size()) == static_cast<ssize_t>(content.size())
            ? ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)
            : nullptr;
    ::unlink(name.c_str());
    return handle;
}

} // namespace

std::map<std::string, std::uint64_t> variables_in(std::string_view image) {
    std::map<std::string, std::uint64_t> variables;
    elf_view const file(image);
    for (std::uint32_t i = 0; auto const table = file.section(i); ++i) {
        auto const names = file.section(table->sh_link);
        if ((table->sh_type != SHT_DYNSYM && table->sh_type != SHT_SYMTAB) || !names) {
            continue;
        }
        for (std::uint64_t k = 0; auto const symbol = file.entry<Elf64_Sym>(*table, k); ++k) {
            auto const defining_section = file.section(symbol->st_shndx);
            if (ELF64_ST_TYPE(symbol->st_info) == STT_OBJECT && defining_section &&
                (defining_section->sh_flags & SHF_WRITE) != 0) {
                variables.emplace(file.text(*names, symbol->st_name), symbol->st_size);
            }
        }
    }
    return variables;
}

void image_set::note_data(void *handle) {
    link_map *found = nullptr;
    if (::dlinfo(handle, RTLD_DI_LINKMAP, &found) != 0) {
        return;
    }
    struct search {
        std::uint64_t base;
        std::vector<range> &data;
    } search_state{found->l_addr, data_};
    ::dl_iterate_phdr(
        [](dl_phdr_info *info, std::size_t /*size*/, void *data) {
            auto &wanted = *static_cast<search *>(data);
            if (info->dlpi_addr != wanted.base) {
                return 0;
            }
            for (int i = 0; i < info->dlpi_phnum; ++i) {
                auto const &segment = info->dlpi_phdr[i];
                if (segment.p_type == PT_LOAD) {
                    std::uint64_t const begin = info->dlpi_addr + segment.p_vaddr;
                    wanted.data.push_back(
                        {begin, begin + segment.p_memsz, (segment.p_flags & PF_W) != 0});
                }
            }
            return 1;
        },
        &search_state);
}

/// Copies the image, because the loader would return the library that is loaded already.
result<std::string> image_set::copy(const std::string &file) {
    auto made = make_image_memory(content_of(file));
    DIOMP_TRY(made);
    copies_.push_back(made.take());
    return path_of(copies_.back());
}

result<void *> image_set::open(const std::string &file, const remote::image_id &id) {
    std::string name = file;
    if (loaded_.contains(id)) {
        auto copied = copy(file);
        DIOMP_TRY(copied);
        name = copied.take();
    }
    void *handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
        std::string const why = loader_error();
        handle = open_as_file(file);
        if (handle == nullptr) {
            return error(OMPX_ERR_UNSUPPORTED, fmt::format("the image cannot be loaded: {}", why));
        }
    }
    loaded_.insert(id);
    return handle;
}

result<std::vector<remote::location>> image_set::load(const std::string &file,
                                                      const remote::image_id &id,
                                                      const std::vector<remote::symbol> &symbols) {
    std::lock_guard const guard(mutex_);
    auto opened = open(file, id);
    DIOMP_TRY(opened);
    void *const handle = opened.value();
    handles_.push_back(handle);
    note_data(handle);
    std::vector<remote::location> locations;
    locations.reserve(symbols.size());
    for (remote::symbol const &each : symbols) {
        auto const address = reinterpret_cast<std::uint64_t>(::dlsym(handle, each.name.c_str()));
        locations.push_back({address, is_variable(address, each.nbytes)});
        names_.emplace(address, each.name);
    }
    return locations;
}

bool image_set::is_variable(std::uint64_t address, std::size_t nbytes) const {
    return nbytes > 0 && std::ranges::any_of(data_, [&](const range &each) {
               return each.is_writable && each.has(address, nbytes);
           });
}

bool image_set::has(std::uint64_t address, std::size_t nbytes) const {
    std::lock_guard const guard(mutex_);
    return std::ranges::any_of(data_, [&](const range &each) { return each.has(address, nbytes); });
}

const std::string *image_set::name_of(std::uint64_t function) const {
    std::lock_guard const guard(mutex_);
    auto const found = names_.find(function);
    return function == 0 || found == names_.end() ? nullptr : &found->second;
}

void image_set::unload() {
    std::lock_guard const guard(mutex_);
    while (!handles_.empty()) {
        ::dlclose(handles_.back());
        handles_.pop_back();
    }
    copies_.clear();
    loaded_.clear();
    data_.clear();
    names_.clear();
}

} // namespace diomp::offload::service
