// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The stand-in's modules and kernels.
#include "device/fake_cuda.h"

#include <cstring>
#include <dlfcn.h>
#include <vector>

namespace fake_cuda {

using stand_in::find_kernel;
using stand_in::reduction_arguments;

namespace {

/// Whether the launch's device may touch all that the kernel will.
bool may_run(int device, const launch &what) {
    if (what.runs->run == nullptr) {
        bool may = what.updates.count <= stand_in::update_arguments::max_updates &&
                   owner_of(what.updates.old_values) < 0;
        for (std::size_t i = 0; may && i < what.updates.count; ++i) {
            device_address const at = what.updates.items[i].address;
            may = at % 4 == 0 && owner_of(at) >= 0 && may_touch(device, at, 4);
        }
        return may;
    }
    std::size_t const nbytes = what.with.count * what.runs->element_bytes;
    bool may = owner_of(what.with.dst) >= 0 && may_touch(device, what.with.dst, nbytes);
    for (std::size_t i = 0; i < what.with.num_sources; ++i) {
        may = may && owner_of(what.with.sources[i]) >= 0 &&
              may_touch(device, what.with.sources[i], nbytes);
    }
    return may;
}

} // namespace

// The addresses are no host's: the kernel gets copies of the arrays, as well aligned as they are.
// Where the destination is a source it is one copy too.
void carry_out(const launch &what) {
    if (what.runs->run == nullptr) { // in the memory itself: the test's threads may update it, too
        for (bool const allow : {true, false}) {
            if (!allow) {
                stand_in::run_updates(what.updates);
            }
            for (std::size_t i = 0; i < what.updates.count; ++i) {
                expose(what.updates.items[i].address, allow);
            }
        }
        return;
    }
    std::size_t const nbytes = what.with.count * what.runs->element_bytes;
    std::vector<std::vector<char>> copies;
    std::map<device_address, char *> here;
    auto const fetch = [&](device_address where) -> unsigned long long {
        if (!here.contains(where)) {
            std::vector<char> &made = copies.emplace_back(nbytes + 32);
            auto const begin = reinterpret_cast<device_address>(made.data());
            here[where] = made.data() + ((where - begin) & 15);
            transfer(true, where, here[where], nbytes);
        }
        return reinterpret_cast<unsigned long long>(here[where]);
    };
    copies.reserve(what.with.num_sources + 1);
    reduction_arguments with = what.with;
    with.dst = fetch(with.dst);
    for (std::size_t i = 0; i < with.num_sources; ++i) {
        with.sources[i] = fetch(with.sources[i]);
    }
    stand_in::run_threads(*what.runs, with,
                          static_cast<unsigned long long>(what.num_blocks) * what.block_threads);
    transfer(false, what.with.dst, here[what.with.dst], nbytes);
}

} // namespace fake_cuda

using namespace fake_cuda;

#define EXPORTED extern "C" __attribute__((visibility("default")))

/// Kernels launched in this process.
EXPORTED int fake_cuda_launches() { return all().launches; }

EXPORTED int cuModuleLoadData(void **into, const void *image) {
    FAKE_CUDA_ENTER_CONTEXT
    if (stand_in::is_set_to("FAKE_CUDA_KERNELS", "none")) {
        return unsupported_ptx_version;
    }
    std::string const text = static_cast<const char *>(image);
    if (text.find(".version") == std::string::npos || text.find(".target") == std::string::npos) {
        return complain(__func__, "no text of PTX", invalid_value);
    }
    auto made = std::make_unique<fake_cuda::module>();
    made->device = current;
    made->text = text;
    *into = made.get();
    all().modules[made.get()] = std::move(made);
    return ok;
}

EXPORTED int cuModuleUnload(void *of) {
    FAKE_CUDA_ENTER_CONTEXT
    auto *const gone = static_cast<fake_cuda::module *>(of);
    if (!all().modules.contains(gone) || gone->device != current) {
        return complain(__func__, "no module of this context", invalid_handle);
    }
    std::erase_if(all().functions, [&](auto const &each) { return each.first.first == gone; });
    if (gone->library != nullptr) {
        ::dlclose(gone->library);
    }
    all().modules.erase(gone);
    return ok;
}

EXPORTED int cuModuleGetFunction(void **into, void *of, const char *name) {
    FAKE_CUDA_ENTER_CONTEXT
    auto *const in = static_cast<fake_cuda::module *>(of);
    if (!all().modules.contains(in) || in->device != current) {
        return complain(__func__, "no module of this context", invalid_handle);
    }
    if (in->library != nullptr) {
        auto *const entry = find_entry(*in, name);
        if (entry == nullptr) {
            return not_found;
        }
        function &found = all().functions[{in, name}];
        found = {in, nullptr, entry};
        *into = &found;
        return ok;
    }
    std::string const entry = std::string(".entry ") + name + "(";
    if (in->text.find(entry) == std::string::npos || find_kernel(name) == nullptr) {
        return complain(__func__, std::string("no kernel ") + name, not_found);
    }
    function &found = all().functions[{in, name}];
    found = {in, find_kernel(name)};
    *into = &found;
    return ok;
}

namespace {
/// CU_LAUNCH_PARAM_BUFFER_POINTER and _SIZE.
std::optional<std::vector<std::uint64_t>> parameters_of(void **extra) {
    constexpr std::uintptr_t pointer_follows = 1;
    constexpr std::uintptr_t size_follows = 2;
    const void *buffer = nullptr;
    std::size_t size = 0;
    for (; *extra != nullptr; extra += 2) {
        auto const what = reinterpret_cast<std::uintptr_t>(*extra);
        if (what == pointer_follows) {
            buffer = extra[1];
        } else if (what == size_follows) {
            size = *static_cast<const std::size_t *>(extra[1]);
        }
    }
    if ((buffer == nullptr && size > 0) || size % sizeof(std::uint64_t) != 0) {
        return std::nullopt;
    }
    std::vector<std::uint64_t> words(size / sizeof(std::uint64_t));
    if (size > 0) {
        std::memcpy(words.data(), buffer, size);
    }
    return words;
}
} // namespace

EXPORTED int cuLaunchKernel(void *of, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                            unsigned block_x, unsigned block_y, unsigned block_z,
                            unsigned shared_bytes, void *on, void **parameters, void **extra) {
    FAKE_CUDA_ENTER_CONTEXT
    auto *const with = static_cast<stream *>(on);
    auto *const what = static_cast<function *>(of);
    if (!all().streams.contains(with) || with->device != current || what->in->device != current) {
        return complain(__func__, "stream or function of another context", invalid_handle);
    }
    if (grid_x == 0 || grid_y != 1 || grid_z != 1 || block_x == 0 || block_x > 1024 ||
        block_y != 1 || block_z != 1 || shared_bytes != 0 ||
        (extra != nullptr) != (what->entry != nullptr)) {
        return complain(__func__, "grid, block, memory or arguments", invalid_value);
    }
    if (what->entry != nullptr) {
        auto const words = parameters_of(extra);
        if (!words) {
            return complain(__func__, "arguments", invalid_value);
        }
        all().image_launches += with->captured ? 0 : 1;
        with->add({.call = image_call{what->entry, *words}});
        return ok;
    }
    launch made{what->runs, grid_x, block_x, {}};
    if (what->runs->run == nullptr) {
        std::memcpy(&made.updates, parameters[0], sizeof(made.updates));
    } else {
        std::memcpy(&made.with, parameters[0], sizeof(made.with));
    }
    if (!may_run(current, made)) {
        return complain(__func__, "it would touch what its device may not", invalid_value);
    }
    ++all().launches;
    with->add({.kernel = made});
    return ok;
}
