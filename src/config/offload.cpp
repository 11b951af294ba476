// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "config/internal/rows.h"

namespace diomp::config {
namespace {

constexpr device_path_set without(device_path_set path) {
    return static_cast<device_path_set>(static_cast<unsigned>(device_path_set::all) &
                                        ~static_cast<unsigned>(path));
}
constexpr std::array<std::pair<const char *, device_path_set>, 4> path_words{
    {{"all", device_path_set::all},
     {"no-ipc", without(device_path_set::ipc)},
     {"no-peer", without(device_path_set::peer)},
     {"bounce", device_path_set::none}}};
constexpr std::array<std::pair<const char *, device_call_paths>, 3> call_words{
    {{"auto", device_call_paths::automatic},
     {"direct", device_call_paths::direct},
     {"ring", device_call_paths::ring}}};

} // namespace

std::span<const setting_row> offload_rows() {
    static constexpr auto rows = std::to_array<setting_row>({
        {"DIOMP_DEVICE_SEGMENT_SIZE", "size", "auto",
         "Address space reserved per device that a rank uses, for memory that OpenMP maps and "
         "allocates there. auto: for host devices a quarter of the rank's own segment, at least "
         "64 MiB; on a GPU twice its memory if reserving is free and the memory is not registered "
         "with GASNet-EX, otherwise four fifths of its memory divided by the number of ranks; on "
         "GPUs of services an eighth of the smallest one's memory.",
         value<auto_size>([](auto &s) -> auto & { return s.offload.segment_size_bytes; })},
        {"DIOMP_DEVICE_PATHS", "all|no-ipc|no-peer|bounce", "all",
         "Paths of transfers with GPU memory. no-ipc: do not map other ranks' memory; no-peer: no "
         "peer access between devices of a rank; bounce: neither, and no network access to GPU "
         "memory. For tests, and for machines whose hardware path is broken.",
         value<word<path_words>>([](auto &s) -> auto & { return s.offload.paths; })},
        {"DIOMP_DEVICE_CALLS", "auto|direct|ring", "auto",
         "How calls in target regions on GPUs reach memory of other ranks. auto: by the GPU's own "
         "loads and stores where that memory is mapped for it, otherwise by requests to a thread "
         "of the rank; direct: no requests, so other memory is unreachable; ring: requests only.",
         value<word<call_words>>([](auto &s) -> auto & { return s.offload.calls; })},
        {"DIOMP_DEVICE_PIN_THRESHOLD", "size", "1M",
         "Copies of at least this size between global host memory and GPUs pin the allocation, "
         "once their total has reached its size, so that the GPU copies at full speed. At least "
         "1M; 1T: never.",
         value<size>([](auto &s) -> auto & { return s.offload.pin_threshold_bytes; })},
    });
    return rows;
}

} // namespace diomp::config
