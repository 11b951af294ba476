// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/hip/library.h"

#include "base/log.h"
#include "base/shared_library.h"

namespace diomp::device::hip {

namespace {
constexpr std::array<const char *, 3> default_names{"libamdhip64.so.7", "libamdhip64.so.6",
                                                    "libamdhip64.so"};
constexpr const char *remedy = "install ROCm 6 or newer, or do without AMD's devices";
} // namespace

result<std::shared_ptr<const library>> load_library(const std::string &path) {
    auto opened = shared_library::open(path, default_names, "HIP's runtime", remedy);
    DIOMP_TRY(opened);
    auto table = std::make_shared<library>();
#define DIOMP_HIP_FIND(name, symbol, parameters) opened.value().find(table->name, #symbol)
    DIOMP_HIP_FUNCTIONS(DIOMP_HIP_FIND);
#undef DIOMP_HIP_FIND
    opened.value().find(table->get_error_name, "hipGetErrorName");
    opened.value().find(table->get_error_string, "hipGetErrorString");
    DIOMP_TRY(opened.value().check());
    int version = 0;
    DIOMP_TRY(check(*table, table->runtime_get_version(&version), "hipRuntimeGetVersion"));
    if (version < min_version) {
        return error(OMPX_ERR_UNSUPPORTED,
                     "HIP's runtime is version " + std::to_string(version / 10000000) + "." +
                         std::to_string(version / 100000 % 100) + ", too old",
                     remedy);
    }
    return std::shared_ptr<const library>(std::move(table));
}

error hip_error(const library &runtime, const std::string &what, code failed) {
    return {failed == out_of_memory   ? OMPX_ERR_NOMEM
            : failed == not_supported ? OMPX_ERR_UNSUPPORTED
                                      : OMPX_ERR_SYSTEM,
            what + ": " + runtime.get_error_string(failed) + " (" + runtime.get_error_name(failed) +
                ")"};
}

status check(const library &runtime, code outcome, const char *what) {
    if (outcome == success) {
        return {};
    }
    return hip_error(runtime, what, outcome);
}

void report(const library &runtime, code outcome, const char *what) noexcept {
    if (outcome != success && outcome != deinitialized) {
        log(log_level::warn, "{}", hip_error(runtime, what, outcome).message());
    }
}

result<current_device> current_device::enter(const library &runtime, int device) {
    int before = -1;
    DIOMP_TRY(check(runtime, runtime.get_device(&before), "hipGetDevice"));
    if (before == device) {
        return current_device(runtime, -1);
    }
    DIOMP_TRY(check(runtime, runtime.set_device(device), "hipSetDevice"));
    return current_device(runtime, before);
}

current_device::~current_device() {
    if (runtime_ != nullptr && before_ >= 0) {
        report(*runtime_, runtime_->set_device(before_), "hipSetDevice");
    }
}

} // namespace diomp::device::hip
