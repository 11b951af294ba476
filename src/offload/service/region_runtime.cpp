// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/service/region_runtime.h"

#include "offload/remote_table.h"
#include "offload/service/target.h"
#include "transport/arena.h"

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <string_view>
#include <system_error>
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

/// The settings are those of the job, not of the service.
void forget_settings() {
    std::vector<std::string> names;
    for (char **each = environ; *each != nullptr; ++each) {
        std::string_view const entry = *each;
        if (entry.starts_with("DIOMP_")) {
            names.emplace_back(entry.substr(0, entry.find('=')));
        }
    }
    for (std::string const &name : names) {
        if (name != "DIOMP_LOG" && name != DIOMP_REMOTE_LOADING) {
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

std::optional<remote::call_error> region_runtime::run_collective(std::string_view call) const {
    std::optional<remote::call_error> failure;
    auto const fail = [](void *into, std::int32_t code, const char *message, const char *remedy) {
        static_cast<std::optional<remote::call_error> *>(into)->emplace(
            remote::call_error{code, {}, {}, shortened(message), shortened(remedy)});
    };
    collective_(call.data(), call.size(), fail, &failure);
    return failure;
}

int region_runtime::map_memory(void *ranks, std::int32_t session, void *to) {
    return static_cast<remote::world *>(ranks)->map_again(world_rank(session), to) ? 0 : -1;
}

status region_runtime::start(remote::world &ranks, const std::string &network, bool encrypts,
                             const std::string &timeout) {
    auto library = load();
    DIOMP_TRY(library);
    auto const begin = reinterpret_cast<diomp_session_start_function>(
        ::dlsym(library.value(), DIOMP_SESSION_START));
    fence_ = reinterpret_cast<diomp_session_fence_function>(
        ::dlsym(library.value(), DIOMP_SESSION_FENCE));
    collective_ = reinterpret_cast<diomp_session_collective_function>(
        ::dlsym(library.value(), DIOMP_SESSION_COLLECTIVE));
    lost_ =
        reinterpret_cast<diomp_session_lost_function>(::dlsym(library.value(), DIOMP_SESSION_LOST));
    if (begin == nullptr || fence_ == nullptr || collective_ == nullptr || lost_ == nullptr) {
        return error(OMPX_ERR_UNSUPPORTED, "libdiomp.so is older than the device service",
                     "install both from the same build");
    }
    forget_settings();
    ::setenv("DIOMP_NETWORK", network.c_str(), 1);
    ::setenv("DIOMP_ERRORS", "return", 1);
    // Memory of the device that becomes part of the segment, and the runtime's own.
    std::size_t const memory_bytes = ranks.arena().usable_bytes();
    std::size_t const segment_bytes = memory_bytes + (std::size_t{64} << 20);
    ::setenv("DIOMP_SEGMENT_SIZE", std::to_string(segment_bytes).c_str(), 1);
    ::setenv("DIOMP_TIMEOUT", timeout.c_str(), 1);
    if (encrypts) {
        ::setenv("DIOMP_ENCRYPT", "all", 1);
    }
    session_ = {DIOMP_SESSION_TABLE_VERSION, launcher_->info().rank.value(), launcher_->info().size,
                launcher_.get(), put, complete_fence, get,
                to_pointer(ranks.memory_of(ranks.rank())), memory_bytes, &ranks,
                ranks.node_of(ranks.rank()).c_str(), ranks.rank().value(),
                // UCX registers the segment when it starts.
                network == "tcp" ? map_memory : nullptr, this, report};
    char const *const failure = begin(&session_);
    return failure == nullptr
               ? status()
               : error(OMPX_ERR_STATE, std::string("the runtime for regions: ") + failure);
}

} // namespace diomp::offload::service
