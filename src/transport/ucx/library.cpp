// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/ucx/library.h"

#include "base/log.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>

namespace diomp::transport::ucx {
namespace {

/// Errors of UCX about a failed peer are logged as info: DiOMP reports them with the peer's name.
ucs_log_func_rc_t forward_log(const char * /*file*/, unsigned /*line*/, const char * /*function*/,
                              ucs_log_level_t level,
                              const ucs_log_component_config_t * /*component*/, const char *format,
                              std::va_list arguments) {
    log_level const ours = level <= UCS_LOG_LEVEL_FATAL  ? log_level::error
                           : level <= UCS_LOG_LEVEL_WARN ? log_level::info
                                                         : log_level::debug;
    if (is_logged(ours, "transport/ucx")) {
        char text[512];
        std::vsnprintf(text, sizeof(text), format, arguments);
        log(ours, "UCX: {}", text);
    }
    return UCS_LOG_FUNC_RC_STOP;
}

result<const library *> load() {
    // Crashes are reported by the system and by diomp-run; UCX's handler hangs in some crashes.
    ::setenv("UCX_HANDLE_ERRORS", "none", 0);
    void *const handle = ::dlopen("libucp.so.0", RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
        char const *const why = ::dlerror();
        return error(OMPX_ERR_UNSUPPORTED,
                     std::string("UCX cannot be loaded: ") + (why == nullptr ? "?" : why),
                     "install UCX 1.13 or newer, or set DIOMP_CONDUIT=shm for ranks of one node");
    }
    static library loaded;
    std::string missing;
    auto const find = [&](auto &into, const char *name) {
        into = reinterpret_cast<std::remove_reference_t<decltype(into)>>(::dlsym(handle, name));
        if (into == nullptr) {
            missing += missing.empty() ? name : std::string(", ") + name;
        }
    };
#define DIOMP_UCX_FIND(name) find(loaded.name, #name)
    DIOMP_UCX_FUNCTIONS(DIOMP_UCX_FIND);
#undef DIOMP_UCX_FIND
    if (!missing.empty()) {
        return error(OMPX_ERR_UNSUPPORTED, "the installed UCX lacks " + missing,
                     "install UCX 1.13 or newer");
    }
    loaded.ucs_log_push_handler(&forward_log);
    return &loaded;
}

} // namespace

result<const library *> load_library() {
    static auto const *const once = new result<const library *>(load()); // used during exit
    if (!*once) {
        return error(once->failure().code(), once->failure().message(), once->failure().remedy());
    }
    return once->value();
}

error ucx_error(const library &ucx, const std::string &what, ucs_status_t code,
                std::string remedy) {
    return {OMPX_ERR_SYSTEM, what + ": " + ucx.ucs_status_string(code), std::move(remedy)};
}

} // namespace diomp::transport::ucx
