// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/version.h"

#include "diomp.h"

#include <fmt/core.h>

#define DIOMP_TEXT_OF(number) #number
#define DIOMP_DOTTED(major, minor, patch)                                                          \
    DIOMP_TEXT_OF(major) "." DIOMP_TEXT_OF(minor) "." DIOMP_TEXT_OF(patch)
#define DIOMP_VERSION_LABEL "libdiomp version "

namespace diomp {
namespace {

// With its label, so that `strings` finds it in a library of unknown origin.
[[gnu::used]] const char g_labelled[] =
    DIOMP_VERSION_LABEL DIOMP_DOTTED(DIOMP_VERSION_MAJOR, DIOMP_VERSION_MINOR, DIOMP_VERSION_PATCH);

} // namespace

error version_mismatch(std::string_view rank, std::string_view version,
                       std::string_view of_rank_0) {
    return {OMPX_ERR_UNSUPPORTED,
            fmt::format("{} has loaded version {} of libdiomp, and rank 0 version {}", rank,
                        version, of_rank_0),
            "start all ranks with the same library: compare LD_LIBRARY_PATH of the ranks, and what "
            "diomp-info prints on their hosts"};
}

const char *library_version() { return g_labelled + sizeof(DIOMP_VERSION_LABEL) - 1; }

} // namespace diomp
