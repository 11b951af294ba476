// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/service/image.h"

#include "base/unique_fd.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>

namespace diomp::offload::service {

std::string image_cache::path_of(const remote::image_id &id) const {
    return folder_ + "/" + remote::to_string(id);
}

std::optional<std::string> image_cache::find(const remote::image_id &id) const {
    std::string path = path_of(id);
    struct stat about{};
    if (::stat(path.c_str(), &about) != 0) {
        return std::nullopt;
    }
    return path;
}

result<std::string> image_cache::add(const remote::image_id &id, std::string_view image) const {
    if (remote::identify(image) != id) {
        return error(OMPX_ERR_ARG, "the image that came is not the one that was announced");
    }
    // Others may look for it meanwhile: the name appears when the content is complete.
    std::string const path = path_of(id);
    std::string temporary = fmt::format("{}/new-XXXXXX", folder_);
    unique_fd const fd(::mkostemp(temporary.data(), O_CLOEXEC));
    if (!fd.valid()) {
        return system_error(fmt::format("keeping an image in {}", folder_), errno);
    }
    while (!image.empty()) {
        ssize_t const written = ::write(fd.get(), image.data(), image.size());
        if (written <= 0) {
            int const code = errno;
            ::unlink(temporary.c_str());
            return system_error(fmt::format("keeping an image in {}", folder_), code);
        }
        image.remove_prefix(static_cast<std::size_t>(written));
    }
    if (::rename(temporary.c_str(), path.c_str()) != 0) {
        return system_error(fmt::format("keeping an image in {}", folder_), errno);
    }
    return path;
}

void image_set::note_data(void *handle) {
    link_map *found = nullptr;
    if (::dlinfo(handle, RTLD_DI_LINKMAP, &found) != 0) {
        return;
    }
    struct search {
        std::uint64_t base;
        std::vector<range> &data;
    } looking{found->l_addr, data_};
    ::dl_iterate_phdr(
        [](dl_phdr_info *info, std::size_t /*size*/, void *data) {
            auto &wanted = *static_cast<search *>(data);
            if (info->dlpi_addr != wanted.base) {
                return 0;
            }
            for (int i = 0; i < info->dlpi_phnum; ++i) {
                auto const &part = info->dlpi_phdr[i];
                if (part.p_type == PT_LOAD) {
                    std::uint64_t const begin = info->dlpi_addr + part.p_vaddr;
                    wanted.data.push_back({begin, begin + part.p_memsz});
                }
            }
            return 1;
        },
        &looking);
}

result<std::vector<std::uint64_t>> image_set::load(const std::string &file,
                                                   const remote::image_id &id,
                                                   const std::vector<remote::symbol> &symbols) {
    std::lock_guard const guard(mutex_);
    auto [place, is_new] = handles_.try_emplace(id, nullptr);
    if (is_new) {
        void *const handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (handle == nullptr) {
            handles_.erase(place);
            char const *const why = ::dlerror();
            return error(OMPX_ERR_UNSUPPORTED,
                         fmt::format("the image cannot be loaded: {}", why != nullptr ? why : "?"));
        }
        place->second = handle;
        order_.push_back(handle);
        note_data(handle);
    }
    std::vector<std::uint64_t> addresses;
    addresses.reserve(symbols.size());
    for (remote::symbol const &each : symbols) {
        auto const address =
            reinterpret_cast<std::uint64_t>(::dlsym(place->second, each.name.c_str()));
        addresses.push_back(address);
        names_.emplace(address, each.name);
    }
    return addresses;
}

bool image_set::has(std::uint64_t address, std::size_t nbytes) const {
    std::lock_guard const guard(mutex_);
    return std::any_of(data_.begin(), data_.end(), [&](const range &each) {
        return address >= each.begin && address <= each.end && nbytes <= each.end - address;
    });
}

const std::string *image_set::name_of(std::uint64_t function) const {
    std::lock_guard const guard(mutex_);
    auto const found = names_.find(function);
    return function == 0 || found == names_.end() ? nullptr : &found->second;
}

void image_set::unload() {
    std::lock_guard const guard(mutex_);
    while (!order_.empty()) {
        ::dlclose(order_.back());
        order_.pop_back();
    }
    handles_.clear();
    data_.clear();
    names_.clear();
}

} // namespace diomp::offload::service
