// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device_coll/vendor/vendor_library.h"

#include "base/shared_library.h"
#include "device_coll/vendor/nccl.h"

#include <fmt/core.h>

namespace diomp::device_coll::vendor {
namespace {

constexpr std::array<const char *, 1> nccl_names{"libnccl.so.2"};
constexpr std::array<const char *, 1> rccl_names{"librccl.so.1"};
constexpr int oldest_version = 21400; ///< the first with nonblocking communicators

const char *name_of(library_kind kind) { return kind == library_kind::nccl ? "NCCL" : "RCCL"; }

const char *remedy_of(library_kind kind) {
    return kind == library_kind::nccl ? "install NCCL 2.14 or newer (DIOMP_NCCL_LIBRARY is its "
                                        "path), or set DIOMP_CCL=native"
                                      : "install RCCL of ROCm 5.5 or newer (DIOMP_RCCL_LIBRARY is "
                                        "its path), or set DIOMP_CCL=native";
}

/// Version numbers up to 2.8 have one digit less.
std::string text_of(int version) {
    int const major = version >= 10000 ? version / 10000 : version / 1000;
    int const minor = version >= 10000 ? version / 100 % 100 : version / 100 % 10;
    return fmt::format("{}.{}.{}", major, minor, version % 100);
}

ompx_status status_of(code outcome) {
    switch (outcome) {
    case invalid_argument:
        return OMPX_ERR_ARG;
    case invalid_usage: // such as two endpoints on one device
        return OMPX_ERR_UNSUPPORTED;
    case remote_error:
        return OMPX_ERR_PEER;
    default:
        return OMPX_ERR_SYSTEM;
    }
}

} // namespace

vendor_library::vendor_library(library_kind kind, std::unique_ptr<functions> calls, int version)
    : kind_(kind), calls_(std::move(calls)), version_(version) {}
vendor_library::~vendor_library() = default;

result<std::shared_ptr<vendor_library>> vendor_library::load(library_kind kind,
                                                             const std::string &path) {
    auto opened = shared_library::open(path, kind == library_kind::nccl ? nccl_names : rccl_names,
                                       name_of(kind), remedy_of(kind));
    DIOMP_TRY(opened);
    auto table = std::make_unique<functions>();
#define DIOMP_NCCL_FIND(name, symbol, parameters) opened.value().find(table->name, #symbol)
    DIOMP_NCCL_FUNCTIONS(DIOMP_NCCL_FIND);
#undef DIOMP_NCCL_FIND
    opened.value().find(table->get_error_string, "ncclGetErrorString");
    opened.value().find(table->get_last_error, "ncclGetLastError");
    DIOMP_TRY(opened.value().check());

    int version = 0;
    code const outcome = table->get_version(&version);
    std::shared_ptr<vendor_library> made(new vendor_library(kind, std::move(table), version));
    if (outcome != success) {
        error const why = made->failed("ncclGetVersion", outcome, nullptr);
        return error(OMPX_ERR_UNSUPPORTED, why.message(), remedy_of(kind));
    }
    if (version < oldest_version) {
        return error(
            OMPX_ERR_UNSUPPORTED,
            fmt::format("{} {} is too old: 2.14 is needed", made->name(), text_of(version)),
            remedy_of(kind));
    }
    return made;
}

const char *vendor_library::name() const { return name_of(kind_); }

std::string vendor_library::version_text() const { return text_of(version_); }

result<unique_id> vendor_library::make_unique_id() {
    unique_id made;
    if (code const outcome = calls_->get_unique_id(&made); outcome != success) {
        return failed("ncclGetUniqueId", outcome, nullptr);
    }
    return made;
}

error vendor_library::failed(const std::string &what, code outcome, void *of) const {
    const char *const words = calls_->get_error_string(outcome);
    const char *const last = calls_->get_last_error(of);
    std::string text = fmt::format("{}: {}: {} (code {})", name(), what,
                                   words == nullptr ? "unknown error" : words, outcome);
    if (last != nullptr && *last != '\0') {
        text += fmt::format("; last error: {}", last);
    }
    return {status_of(outcome), std::move(text),
            "set NCCL_DEBUG=WARN for more messages of the library on standard output"};
}

} // namespace diomp::device_coll::vendor
