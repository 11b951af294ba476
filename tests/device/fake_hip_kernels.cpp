// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The stand-in's modules and kernels.
#include "device/fake_hip.h"

#include <cstdlib>
#include <cstring>

using namespace fake_hip;

/// The code object for the devices in a bundle of clang's: a magic text, the number of entries, and
/// of each where its image lies, how long it and its name are, and the name.
static std::string_view image_for_devices(const char *bundle) {
    constexpr std::string_view magic = "__CLANG_OFFLOAD_BUNDLE__";
    if (std::string_view(bundle, magic.size()) != magic) {
        return {};
    }
    const char *const arch = std::getenv("FAKE_HIP_ARCH");
    std::string const wanted = std::string("--") + (arch == nullptr ? "gfx90a" : arch);
    const char *at = bundle + magic.size();
    auto const number = [&] {
        std::uint64_t value = 0;
        std::memcpy(&value, at, sizeof(value));
        at += sizeof(value);
        return value;
    };
    for (std::uint64_t left = number(); left > 0; --left) {
        std::uint64_t const offset = number();
        std::uint64_t const size = number();
        std::uint64_t const length = number();
        std::string_view const name(at, length);
        at += length;
        if (name.starts_with("hip") && name.ends_with(wanted)) {
            return {bundle + offset, size};
        }
    }
    return {};
}

EXPORTED int hipModuleLoadData(void **into, const void *image) {
    FAKE_HIP_ENTER
    if (reinterpret_cast<std::uintptr_t>(image) % 4096 != 0) {
        return complain(__func__, "images of a bundle lie at multiples of a page", invalid_value);
    }
    std::string_view const found = image_for_devices(static_cast<const char *>(image));
    if (found.empty()) {
        return no_binary_for_gpu;
    }
    if (!found.starts_with("\x7f"
                           "ELF")) {
        return complain(__func__, "no code object", invalid_value);
    }
    auto made = std::make_unique<module>(module{current, found});
    *into = made.get();
    all().modules[made.get()] = std::move(made);
    return ok;
}
EXPORTED int hipModuleUnload(void *of) {
    FAKE_HIP_ENTER
    auto *const gone = static_cast<module *>(of);
    if (!all().modules.contains(gone) || gone->device != current) {
        return complain(__func__, "no module of this device", invalid_value);
    }
    std::erase_if(all().functions, [&](auto const &each) { return each.first.first == gone; });
    all().modules.erase(gone);
    return ok;
}
EXPORTED int hipModuleGetFunction(void **into, void *of, const char *name) {
    FAKE_HIP_ENTER
    auto *const in = static_cast<module *>(of);
    if (!all().modules.contains(in) || in->device != current) {
        return complain(__func__, "no module of this device", invalid_value);
    }
    // A kernel's descriptor is a symbol with its name and ".kd".
    std::string const descriptor = std::string(1, '\0') + name + ".kd" + std::string(1, '\0');
    if (in->image.find(descriptor) == std::string_view::npos ||
        stand_in::find_kernel(name) == nullptr) {
        return complain(__func__, name, not_found);
    }
    function &found = all().functions[{in, name}];
    found = {in, stand_in::find_kernel(name)};
    *into = &found;
    return ok;
}
EXPORTED int hipModuleLaunchKernel(void *of, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                   unsigned block_x, unsigned block_y, unsigned block_z,
                                   unsigned shared_bytes, void *on, void **parameters,
                                   void **extra) {
    FAKE_HIP_ENTER
    auto *const with = static_cast<stream *>(on);
    auto *const what = static_cast<function *>(of);
    if (!all().streams.contains(with) || with->device != current || what->in->device != current) {
        return complain(__func__, "stream or function of another device", invalid_value);
    }
    bool const updates = what->runs->run == nullptr;
    // The kernels are compiled for blocks of this size only.
    if (grid_x == 0 || grid_y != 1 || grid_z != 1 ||
        block_x != (updates ? 1 : stand_in::reduction_arguments::block_threads) || block_y != 1 ||
        block_z != 1 || shared_bytes != 0 || extra != nullptr) {
        return complain(__func__, "grid, block or memory", invalid_value);
    }
    launch made{what->runs, std::uint64_t{grid_x} * block_x, {}};
    if (updates) {
        std::memcpy(&made.updates, parameters[0], sizeof(made.updates));
    } else {
        std::memcpy(&made.with, parameters[0], sizeof(made.with));
    }
    auto const is_foreign = [&](unsigned long long where) {
        auto const *const at = reinterpret_cast<const void *>(where);
        return holding(at) == nullptr || !may_touch(current, at);
    };
    bool may = updates || !is_foreign(made.with.dst);
    for (std::size_t i = 0; i < made.updates.count; ++i) {
        may = may && !is_foreign(made.updates.items[i].address);
    }
    for (std::size_t i = 0; i < made.with.num_sources; ++i) {
        may = may && !is_foreign(made.with.sources[i]);
    }
    if (!may) {
        return complain(__func__, "it would touch what its device may not", invalid_value);
    }
    ++all().launches;
    with->pending.push_back({nullptr, nullptr, 0, made});
    with->questions = 0;
    return ok;
}
