// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/internal/own_variables.h"

#include "base/mappings.h"
#include "offload/device_names.h"
#include "offload/device_segment.h"
#include "offload/device_segments.h"
#include "offload/internal/segment_memory.h"
#include "offload/variable_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace diomp::offload {

namespace {

/// Marks the variables of which a byte is in read-only memory of this process.
void mark_constants(std::map<std::uintptr_t, variable> &all) {
    visit_mappings([&](const memory_mapping &each) {
        auto of = all.upper_bound(each.begin);
        if (of != all.begin()) {
            --of;
        }
        for (; !each.is_writable && of != all.end() && of->first < each.end; ++of) {
            of->second.is_constant =
                of->second.is_constant || of->first + of->second.nbytes > each.begin;
        }
        return true;
    });
}

} // namespace

/// Reads libomptarget's variables if its generation has changed.
void own_variables::refresh(const diomp_variable_table &from) {
    std::uint64_t const generation = from.generation();
    {
        std::shared_lock const guard(mutex_);
        if (generation_ == generation) {
            return;
        }
    }
    struct collection {
        const memory::segment &own;
        std::map<std::uintptr_t, variable> found;
    } collected{host_, {}};
    from.visit(
        [](void *into, const void *host, std::uint64_t nbytes, const char *name) {
            auto &to = *static_cast<collection *>(into);
            to.found[reinterpret_cast<std::uintptr_t>(host)] = {
                static_cast<const std::byte *>(host), nbytes, identify(host, to.own), name, false};
        },
        &collected);
    mark_constants(collected.found);
    std::lock_guard const guard(mutex_);
    by_address_ = std::move(collected.found);
    generation_ = generation;
}

std::optional<variable> own_variables::find(const void *host) {
    diomp_variable_table const *const from = openmp_.variable_table();
    if (from == nullptr) {
        return std::nullopt;
    }
    refresh(*from);
    auto const address = reinterpret_cast<std::uintptr_t>(host);
    std::shared_lock const guard(mutex_);
    auto const after = by_address_.upper_bound(address);
    if (after == by_address_.begin()) {
        return std::nullopt;
    }
    variable const &before = std::prev(after)->second;
    return address - reinterpret_cast<std::uintptr_t>(before.host) < before.nbytes
               ? std::optional(before)
               : std::nullopt;
}

std::optional<variable> own_variables::find(const identity &what, std::uint32_t name) {
    diomp_variable_table const *const from = openmp_.variable_table();
    if (from == nullptr || what.from != identity::origin::variable) {
        return std::nullopt;
    }
    refresh(*from);
    std::shared_lock const guard(mutex_);
    auto const found = std::ranges::find_if(by_address_, [&](const auto &entry) {
        identity const &own = entry.second.what;
        return own.from == what.from && own.module == what.module && own.offset == what.offset &&
               hash_of(entry.second.name.c_str()) == name;
    });
    return found == by_address_.end() ? std::nullopt : std::optional(found->second);
}

status own_variables::load(int device) {
    diomp_variable_table const *const from = openmp_.variable_table();
    if (from == nullptr || from->load(device) == 0) {
        return error(OMPX_ERR_UNSUPPORTED,
                     fmt::format("the program's image cannot be loaded on device {}", device),
                     "see libomptarget's output with LIBOMPTARGET_INFO=-1");
    }
    return {};
}

result<device_ptr> own_variables::locate_copy(const variable &of, int device) {
    // Also creates the segment, which determines the kind of the device.
    auto segment = segments_.segment_of(device);
    DIOMP_TRY(segment);
    if (!openmp_.has_mappings()) {
        return segments_.no_segment_error(device);
    }
    void *copy = openmp_.mapped_address(of.host, device);
    if (copy == nullptr) {
        DIOMP_TRY(load(device));
        copy = openmp_.mapped_address(of.host, device);
    }
    if (copy == nullptr || segment.value()->offset_of(copy)) {
        return error(OMPX_ERR_ADDRESS,
                     fmt::format("the image of device {} has no copy of {}", device, of.name),
                     "declare it for this kind of device, and do not associate it with other "
                     "memory");
    }
    segment_memory const *const memory = segment.value()->memory();
    std::optional<int> const remote_index = segment.value()->remote_index();
    accelerator const *const on = remote_index
                                      ? segments_.devices().find(DIOMP_REMOTE_PLUGIN, *remote_index)
                                  : memory != nullptr ? &memory->on()
                                                      : nullptr;
    if (on == nullptr) {
        return device_ptr{static_cast<std::byte *>(copy), nullptr};
    }
    auto address = segments_.devices().register_memory(*on, copy, of.nbytes);
    DIOMP_TRY(address);
    return device_ptr{address.value(), on};
}

} // namespace diomp::offload
