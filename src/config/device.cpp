// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "config/internal/rows.h"

#include <fmt/core.h>

#include <charconv>
#include <optional>
#include <utility>
#include <vector>

namespace diomp::config {
namespace {

constexpr char wait_choices[] = "auto|spin|yield|block";

/// "auto" is accepted for the default, and not shown.
struct stream_count : auto_number<1, 32> {
    static std::string show(int value) { return fmt::format("{}", value); }
};

struct device_count {
    static status parse(int &into, const std::string &text) {
        constexpr int max_devices = 1024;
        int value = 0;
        auto const [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (code != std::errc{} || end != text.data() + text.size() || value < 1 ||
            value > max_devices) {
            return malformed(text, "a number of devices from 1 to 1024");
        }
        into = value;
        return {};
    }
    static std::string show(int value) { return fmt::format("{}", value); }
};

struct numa_node_list {
    using nodes = std::optional<std::vector<int>>;

    static status parse(nodes &into, const std::string &text) {
        into.reset();
        if (text == "auto") {
            return {};
        }
        std::vector<int> parsed;
        const char *at = text.data();
        const char *const end = text.data() + text.size();
        while (true) {
            int node = 0;
            auto const [next, code] = std::from_chars(at, end, node);
            if (code != std::errc{} || node < -1 || (next != end && *next != ',')) {
                return malformed(text, "a list of NUMA nodes such as 0,0,1,-1, or 'auto'");
            }
            parsed.push_back(node);
            if (next == end) {
                break;
            }
            at = next + 1;
        }
        into = std::move(parsed);
        return {};
    }
    static std::string show(const nodes &value) {
        if (!value) {
            return "auto";
        }
        std::string text;
        for (int const node : *value) {
            text += fmt::format("{}{}", text.empty() ? "" : ",", node);
        }
        return text;
    }
};

} // namespace

std::span<const setting_row> device_rows() {
    static constexpr auto rows = std::to_array<setting_row>({
        {"DIOMP_DEVICES_PER_RANK", "integer", "1",
         "Number of devices that a rank drives (diomp-run --devices-per-rank). The first is its "
         "default device unless OMP_DEFAULT_DEVICE is set; ompx_rank_device() returns their "
         "numbers.",
         value<device_count>([](auto &s) -> auto & { return s.device.per_rank; })},
        {"DIOMP_DEVICE_NUMA_NODES", "list", "auto",
         "NUMA node of each GPU, in the order of OpenMP's device numbers, -1 if unknown, for "
         "machines that do not report it. For tests, in programs without GPUs: NUMA node of each "
         "host device; the node's ranks then share these. auto: from the vendor's library and the "
         "kernel.",
         value<numa_node_list>([](auto &s) -> auto & { return s.device.numa_nodes; })},
        {"DIOMP_DEVICE_WAIT", wait_choices, "auto",
         "How threads wait for regions and transfers on CUDA devices: poll (spin), poll and yield "
         "the core (yield), or sleep until an interrupt (block; an empty region takes some 15 us "
         "longer). auto: the choice of CUDA's driver, but block if the node has more ranks than "
         "cores.",
         value<choice<wait_choices>>([](auto &s) -> auto & { return s.device.wait; })},
        {"DIOMP_COPY_THREADS", "integer", "auto",
         "Threads of a process that copy large private host memory (from 4 MiB on) from and to "
         "CUDA devices through pinned memory, with the caller's. Below 2: CUDA's driver copies. "
         "auto: one for two processors of the process, at most 4.",
         value<auto_number<0, -1>>([](auto &s) -> auto & { return s.device.copy_threads; })},
        {"DIOMP_PLAN_GRAPHS", "on|off", "on",
         "CUDA devices launch regions of a plan that follow each other as a CUDA graph. off: one "
         "after the other.",
         value<on_off>([](auto &s) -> auto & { return s.device.plan_graphs; })},
        {"DIOMP_MAX_ACTIVE_STREAMS", "integer", "32",
         "Copies of a GPU that may be in flight at a time, per rank; at the limit the rank waits "
         "for half of them.",
         value<stream_count>([](auto &s) -> auto & { return s.device.max_active_streams; })},
        {"DIOMP_CUDA_LIBRARY", "path", "",
         "CUDA's driver, if it is not libcuda.so.1 in the system's library path.",
         value<any_text>([](auto &s) -> auto & { return s.device.cuda_library; })},
        {"DIOMP_HIP_LIBRARY", "path", "",
         "HIP's runtime, if it is not libamdhip64.so in the system's library path.",
         value<any_text>([](auto &s) -> auto & { return s.device.hip_library; })},
    });
    return rows;
}

} // namespace diomp::config
