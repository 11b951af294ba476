// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/cuda/library.h"

#include "base/log.h"
#include "base/shared_library.h"

namespace diomp::device::cuda {

namespace {
constexpr std::array<const char *, 1> default_names{"libcuda.so.1"};
constexpr const char *remedy = "install NVIDIA's driver, 470 or newer, or do without its devices";
} // namespace

result<std::shared_ptr<const library>> load_library(const std::string &path) {
    auto opened = shared_library::open(path, default_names, "CUDA's driver", remedy);
    if (!opened) {
        return opened.take_failure();
    }
    auto table = std::make_shared<library>();
#define DIOMP_CUDA_FIND(name, symbol, parameters) opened.value().find(table->name, #symbol)
    DIOMP_CUDA_FUNCTIONS(DIOMP_CUDA_FIND);
#undef DIOMP_CUDA_FIND
    DIOMP_TRY(opened.value().check());
    if (code const outcome = table->init(0); outcome != success) {
        error const why = cuda_error(*table, "CUDA's driver does not start", outcome);
        return error(OMPX_ERR_UNSUPPORTED, why.message(),
                     outcome == no_device ? "there is no device that CUDA can use; see nvidia-smi"
                                          : "");
    }
    return std::shared_ptr<const library>(std::move(table));
}

error cuda_error(const library &driver, const std::string &what, code failed) {
    const char *text = nullptr;
    const char *name = nullptr;
    bool const known = driver.get_error_string(failed, &text) == success && text != nullptr &&
                       driver.get_error_name(failed, &name) == success && name != nullptr;
    std::string const words = known ? std::string(text) + " (" + name + ")"
                                    : "unknown CUDA error " + std::to_string(failed);
    return {failed == out_of_memory   ? OMPX_ERR_NOMEM
            : failed == not_supported ? OMPX_ERR_UNSUPPORTED
                                      : OMPX_ERR_SYSTEM,
            what + ": " + words};
}

status check(const library &driver, code outcome, const char *what) {
    if (outcome == success) {
        return {};
    }
    return cuda_error(driver, what, outcome);
}

void report(const library &driver, code outcome, const char *what) noexcept {
    if (outcome != success && outcome != deinitialized) {
        log(log_level::warn, "{}", cuda_error(driver, what, outcome).message());
    }
}

} // namespace diomp::device::cuda
