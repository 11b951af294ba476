// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/sizes.h"
#include "config/internal/rows.h"

#include <cstddef>
#include <optional>

namespace diomp::config {
namespace {

constexpr std::array<std::pair<const char *, ccl_choice>, 4> ccl_words{
    {{"auto", ccl_choice::automatic},
     {"native", ccl_choice::native},
     {"nccl", ccl_choice::nccl},
     {"rccl", ccl_choice::rccl}}};

struct optional_size {
    static status parse(std::optional<std::size_t> &into, const std::string &text) {
        into.reset();
        if (text == "auto") {
            return {};
        }
        auto parsed = parse_size(text);
        DIOMP_TRY(parsed);
        into = parsed.value();
        return {};
    }
    static std::string show(const std::optional<std::size_t> &value) {
        return value ? format_size(*value) : "auto";
    }
};

} // namespace

std::span<const setting_row> device_coll_rows() {
    static constexpr auto rows = std::to_array<setting_row>({
        {"DIOMP_CCL", "auto|native|nccl|rccl", "auto",
         "Library for collectives of groups of GPUs; equal on all ranks. auto: NCCL or RCCL if "
         "all endpoints are different GPUs of one vendor and every rank has the library, "
         "otherwise native; nccl, rccl: an error if the library cannot be used. Scans, and types "
         "and operators that the library does not have, are always native.",
         value<word<ccl_words>>([](auto &s) -> auto & { return s.device_coll.ccl; })},
        {"DIOMP_DEVICE_DIRECT_THRESHOLD", "size", "auto",
         "Native collectives of GPUs on blocks of at least this size copy from device to device "
         "and reduce on devices, if the members on a node can access each other's memory; smaller "
         "ones go through host memory. The largest value of all ranks is used. 0: all; 1T: none; "
         "auto: all, but from 32K between nodes, and for reductions if ranks share a GPU, which "
         "time-slices their kernels.",
         value<optional_size>(
             [](auto &s) -> auto & { return s.device_coll.direct_threshold_bytes; })},
        {"DIOMP_NCCL_LIBRARY", "path", "",
         "NVIDIA's collective library, if it is not libnccl.so.2 in the system's library path.",
         value<any_text>([](auto &s) -> auto & { return s.device_coll.nccl_library; })},
        {"DIOMP_RCCL_LIBRARY", "path", "",
         "AMD's collective library, if it is not librccl.so.1 in the system's library path.",
         value<any_text>([](auto &s) -> auto & { return s.device_coll.rccl_library; })},
    });
    return rows;
}

} // namespace diomp::config
