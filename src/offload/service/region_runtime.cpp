// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/service/region_runtime.h"

#include "base/log_setup.h"
#include "offload/remote_table.h"
#include "offload/service/target.h"
#include "transport/arena.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <unistd.h>
#include <utility>
#include <vector>

namespace diomp::offload::service {
namespace {

launch::launcher &as_launcher(void *handle) { return *static_cast<launch::launcher *>(handle); }

int put(void *launcher, const char *key, std::size_t key_bytes, const char *value,
        std::size_t value_bytes) {
    return as_launcher(launcher).put({key, key_bytes}, {value, value_bytes}) ? 0 : -1;
}

int complete_fence(void *launcher) { return as_launcher(launcher).fence() ? 0 : -1; }

int get(void *launcher, std::int32_t owner, const char *key, std::size_t key_bytes,
        void (*take)(void *into, const char *value, std::size_t value_bytes), void *into) {
    auto const value = as_launcher(launcher).get(world_rank(owner), {key, key_bytes});
    if (!value) {
        return -1;
    }
    take(into, value.value().data(), value.value().size());
    return 0;
}

/// The settings are those of the job, not of the service, but for those of its GPUs.
void forget_settings() {
    static constexpr std::string_view kept[] = {
        "DIOMP_LOG",         DIOMP_REMOTE_LOADING, "DIOMP_CUDA_LIBRARY",
        "DIOMP_HIP_LIBRARY", "DIOMP_DEVICE_PATHS", "DIOMP_DEVICE_CALLS",
        "DIOMP_CCL",         "DIOMP_NCCL_LIBRARY", "DIOMP_RCCL_LIBRARY",
    };
    std::vector<std::string> names;
    for (char **each = environ; *each != nullptr; ++each) {
        std::string_view const entry = *each;
        if (entry.starts_with("DIOMP_")) {
            names.emplace_back(entry.substr(0, entry.find('=')));
        }
    }
    for (std::string const &name : names) {
        if (std::ranges::find(kept, name) == std::end(kept)) {
            ::unsetenv(name.c_str());
        }
    }
}

result<void *> load() {
    std::error_code failed;
    auto const program = std::filesystem::read_symlink("/proc/self/exe", failed);
    auto const file = program.parent_path() / DIOMP_BIN_TO_LIB / DIOMP_LIBRARY_FILE;
    void *const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        return error(OMPX_ERR_UNSUPPORTED, ::dlerror(), "install it next to the device service");
    }
    return library;
}

/// Sentences are cut so that an error fits into a reply.
constexpr std::size_t max_text_bytes = 400;

std::string shortened(std::string_view text) { return std::string(text.substr(0, max_text_bytes)); }

} // namespace

void region_runtime::report(void *self, std::int32_t code, const char *function,
                            const char *arguments, const char *message, const char *remedy) {
    auto &to = *static_cast<region_runtime *>(self);
    std::string const encoded = encode(remote::call_error{code, function, shortened(arguments),
                                                          shortened(message), shortened(remedy)});
    std::lock_guard const guard(to.mutex_);
    if (to.error_.empty()) {
        to.error_ = encoded;
    }
}

std::string region_runtime::take_error(std::size_t max_bytes) {
    std::lock_guard const guard(mutex_);
    return error_.size() <= max_bytes ? std::exchange(error_, {}) : std::string();
}

std::optional<remote::call_error> region_runtime::run_call(std::string_view call) const {
    std::optional<remote::call_error> failure;
    auto const fail = [](void *into, std::int32_t code, const char *message, const char *remedy) {
        static_cast<std::optional<remote::call_error> *>(into)->emplace(
            remote::call_error{code, {}, {}, shortened(message), shortened(remedy)});
    };
    call_(call.data(), call.size(), fail, &failure);
    return failure;
}

int region_runtime::map_memory(void *ranks, std::int32_t session, void *to) {
    return static_cast<remote::world *>(ranks)->map_again(world_rank(session), to) ? 0 : -1;
}

status region_runtime::find_functions(void *library) {
    auto const find = [&](const char *name, auto &function) {
        function =
            reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
        return function != nullptr;
    };
    diomp_session_regions_function regions = nullptr;
    if (!find(DIOMP_SESSION_START, start_) || !find(DIOMP_SESSION_FENCE, fence_) ||
        !find(DIOMP_SESSION_CALL, call_) || !find(DIOMP_SESSION_LOST, lost_) ||
        !find(DIOMP_SESSION_SEGMENT, segment_) || !find(DIOMP_SESSION_GROUP, group_) ||
        !find(DIOMP_SESSION_REGIONS, regions)) {
        return error(OMPX_ERR_UNSUPPORTED, "libdiomp.so is older than the device service",
                     "install both from the same build");
    }
    regions_ = regions();
    return {};
}

status region_runtime::start(remote::world &ranks, const remote::join_frame &how,
                             std::optional<gpu> on) {
    auto library = load();
    DIOMP_TRY(library);
    DIOMP_TRY(find_functions(library.value()));
    forget_settings();
    ::setenv("DIOMP_NETWORK", how.conduit.c_str(), 1);
    ::setenv("DIOMP_ERRORS", "return", 1);
    ::setenv("DIOMP_TIMEOUT", how.timeout.c_str(), 1);
    if (how.encrypts_data) {
        ::setenv("DIOMP_ENCRYPT", "all", 1);
    }
    // Memory of the device that becomes part of the segment, and the runtime's own.
    std::size_t const memory_bytes = on ? 0 : ranks.arena().usable_bytes();
    std::size_t const segment_bytes = memory_bytes + (std::size_t{64} << 20);
    ::setenv("DIOMP_SEGMENT_SIZE", std::to_string(segment_bytes).c_str(), 1);
    session_.version = DIOMP_SESSION_TABLE_VERSION;
    session_.rank = launcher_->info().rank.value();
    session_.size = launcher_->info().size;
    session_.launcher = launcher_.get();
    session_.put = put;
    session_.fence = complete_fence;
    session_.get = get;
    session_.world = &ranks;
    session_.node = ranks.node_of(ranks.rank()).c_str();
    session_.rank_in_world = ranks.rank().value();
    session_.errors = this;
    session_.report = report;
    if (on) {
        gpu_ = std::move(on);
        session_.plugin = gpu_->plugin.c_str();
        session_.plugin_device = gpu_->device;
        ::setenv("DIOMP_DEVICE_SEGMENT_SIZE", std::to_string(how.segment_bytes).c_str(), 1);
    } else {
        session_.memory = to_pointer(ranks.memory_of(ranks.rank()));
        session_.memory_bytes = memory_bytes;
        // UCX registers the segment when it starts.
        session_.map = how.conduit == "tcp" ? map_memory : nullptr;
    }
    char const *const failure = start_(&session_, log_descriptor());
    return failure == nullptr
               ? status()
               : error(OMPX_ERR_STATE, std::string("the runtime for regions: ") + failure);
}

} // namespace diomp::offload::service
