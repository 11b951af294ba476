// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "build_info.h"

#include "build_date.h"
#include "build_parts.h"

#include <fmt/format.h>

#include <string_view>
#include <vector>

namespace diomp::info {
namespace {

/// Lists the parts that are built in; `absent` names those that are not.
class part_list {
public:
    explicit part_list(std::vector<std::string> always) : present_(std::move(always)) {}

    /// `name` and version are shown; `absent` without a version.
    part_list &add(std::string_view name, std::string_view version, std::string_view absent = "") {
        if (version.empty()) {
            absent_.emplace_back(absent.empty() ? name : absent);
        } else {
            present_.push_back(fmt::format("{} {}", name, version));
        }
        return *this;
    }
    [[nodiscard]] std::string text() const {
        std::string list = present_.empty() ? "none" : fmt::format("{}", fmt::join(present_, ", "));
        return absent_.empty() ? list : fmt::format("{}; not {}", list, fmt::join(absent_, ", "));
    }

private:
    std::vector<std::string> present_;
    std::vector<std::string> absent_;
};

nlohmann::json or_null(std::string_view version) {
    return version.empty() ? nlohmann::json() : nlohmann::json(version);
}

} // namespace

std::string build_text() {
    std::string_view const sanitizers = DIOMP_BUILD_SANITIZERS;
    std::string text =
        fmt::format("built      {}, by {}, {}{}{} for {}\n", DIOMP_BUILD_DATE, DIOMP_BUILD_COMPILER,
                    DIOMP_BUILD_TYPE, sanitizers.empty() ? "" : " with sanitizers ", sanitizers,
                    DIOMP_BUILD_PROCESSOR);
    auto const line = [&text](std::string_view label, const part_list &parts) {
        text += fmt::format("{:<11}{}\n", label, parts.text());
    };
    line("networks", part_list({"shm", "tcp"})
                         .add("UCX", DIOMP_BUILD_UCX)
                         .add("GASNet-EX", DIOMP_BUILD_GASNET)
                         .add("GPI-2", DIOMP_BUILD_GPI2));
    line("start-up", part_list({"diomp-run", "PMI-1", "PMI-2"}).add("PMIx", DIOMP_BUILD_PMIX));
    line("offload", part_list({})
                        .add("libomptarget of LLVM", DIOMP_BUILD_OFFLOAD, "libomptarget")
                        .add("pragmas for clang", DIOMP_BUILD_PRAGMAS, "pragmas")
                        .add("reductions on GPUs of", DIOMP_BUILD_KERNELS, "reductions on GPUs"));
    line("languages", part_list({"C", "C++"})
                          .add("Fortran by", DIOMP_BUILD_FORTRAN, "Fortran")
                          .add("Python", DIOMP_BUILD_PYTHON));
    return text;
}

nlohmann::json build_json() {
    return {{"date", DIOMP_BUILD_DATE},
            {"type", DIOMP_BUILD_TYPE},
            {"compiler", DIOMP_BUILD_COMPILER},
            {"processor", DIOMP_BUILD_PROCESSOR},
            {"sanitizers", or_null(DIOMP_BUILD_SANITIZERS)},
            {"ucx", or_null(DIOMP_BUILD_UCX)},
            {"gasnet", or_null(DIOMP_BUILD_GASNET)},
            {"gpi2", or_null(DIOMP_BUILD_GPI2)},
            {"pmix", or_null(DIOMP_BUILD_PMIX)},
            {"offload", or_null(DIOMP_BUILD_OFFLOAD)},
            {"pragmas", or_null(DIOMP_BUILD_PRAGMAS)},
            {"gpu_kernels", or_null(DIOMP_BUILD_KERNELS)},
            {"fortran", or_null(DIOMP_BUILD_FORTRAN)},
            {"python", or_null(DIOMP_BUILD_PYTHON)}};
}

int print_build(bool as_json) {
    if (as_json) {
        fmt::print("{}\n", build_json().dump(2));
    } else {
        fmt::print("DiOMP      {}\n{}", DIOMP_VERSION, build_text());
    }
    return 0;
}

} // namespace diomp::info
