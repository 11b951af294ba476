// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Device memory in the global address space: the allocations of libomptarget, and transfers between
// device or host memory of any two ranks. For the glossary see sides.h.
#pragma once

#include "base/result.h"
#include "diomp/types.h"
#include "offload/openmp.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace diomp {
enum class device_call_paths : std::uint8_t;
enum class device_path_set : unsigned;
} // namespace diomp
namespace diomp::launch {
struct job_info;
}
namespace diomp::transport {
class arena;
}
namespace diomp::messaging {
class call_service;
class engine;
} // namespace diomp::messaging
namespace diomp::memory {
class address_space;
class directory;
class segment;
} // namespace diomp::memory
namespace diomp::rma {
class transfers;
}

namespace diomp::offload {

class alloc_directory;
class device_allocator;
class device_segments;
class device_endpoints;
class mover;
class path_selector;
class plans;
class preregistered_segments;
class stream_copies;
class translator;
class variables;
struct executed_request;
struct group_members;

struct options {
    device_path_set paths{};       ///< allowed paths
    std::size_t segment_bytes = 0; ///< of an accelerator; 0: chosen by device
    std::size_t min_pin_bytes = 0; ///< see pinned_host
    device_call_paths calls{};     ///< of calls in target regions
    /// May be empty; see request_observer.h.
    std::function<void(const executed_request &)> on_request;
};

/// Owns the parts of this module, whose headers say what they do. Create before engine.start().
class devices {
public:
    devices(memory::address_space &space, memory::segment &host, memory::directory &registered,
            const transport::arena &arena, messaging::engine &engine,
            messaging::call_service &calls, rma::transfers &transfers,
            preregistered_segments &preregistered, launch::job_info const &job,
            const options &chosen);
    ~devices();

    /// Call before the first transfer; without it there are no devices. `epoch` is incremented
    /// before device memory of this rank is freed.
    void attach(const openmp &functions, std::atomic<std::uint64_t> &epoch);

    /// The groups whose barriers regions may call. Call before the first region.
    void set_groups(std::function<result<group_members>(ompx_group_t)> find);
    /// This rank has freed the group with this id (group_members::id).
    void forget_group(std::uint64_t id);

    [[nodiscard]] device_segments &segments() { return *segments_; }
    [[nodiscard]] device_allocator &allocator() { return *allocator_; }
    [[nodiscard]] const alloc_directory &directory() const { return *directory_; }
    /// alloc_directory::device_index_of.
    [[nodiscard]] std::int32_t device_index_of(int device) const;
    [[nodiscard]] path_selector &paths() { return *paths_; }
    [[nodiscard]] offload::variables &variables() { return *variables_; }
    [[nodiscard]] stream_copies &copies() { return *copies_; }
    [[nodiscard]] offload::translator &translator() { return *translator_; }
    [[nodiscard]] device_endpoints &endpoints() { return *endpoints_; }
    [[nodiscard]] offload::mover &mover() { return *mover_; }
    [[nodiscard]] offload::plans &plans() { return *plans_; }

private:
    struct bounce_path;

    openmp_devices openmp_;
    std::unique_ptr<device_segments> segments_;
    std::unique_ptr<alloc_directory> directory_;
    std::unique_ptr<path_selector> paths_;
    std::unique_ptr<offload::variables> variables_;
    std::unique_ptr<stream_copies> copies_;
    std::unique_ptr<bounce_path> bounce_;
    std::unique_ptr<device_allocator> allocator_;
    std::unique_ptr<offload::translator> translator_;
    std::unique_ptr<offload::mover> mover_;
    std::unique_ptr<device_endpoints> endpoints_;
    std::unique_ptr<offload::plans> plans_;
};

} // namespace diomp::offload
