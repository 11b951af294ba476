// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One device of a service, as its client sees it.
#pragma once

#include "base/result.h"
#include "offload/remote/deferred_work.h"
#include "offload/remote/device_memory.h"
#include "offload/remote/observer.h"
#include "offload/remote/protocol.h"
#include "offload/remote/world.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace diomp::offload::remote {

class control_connection;
class session_control;
class session_output;
class world;

/// Any thread.
class remote_device {
public:
    remote_device(control_connection connection, device_description description,
                  const std::string &service, std::size_t index);
    ~remote_device();
    /// The device's rank in the world. Call before the functions below.
    void set_rank(world_rank rank) { rank_ = rank; }
    /// Call once the world is complete and before the client's thread starts.
    void set_up(world &ranks, client_observer *observer, bool defers_regions);

    [[nodiscard]] const device_description &description() const { return description_; }
    [[nodiscard]] world_rank rank() const { return rank_; }
    /// Index in the list of the client's devices.
    [[nodiscard]] std::size_t index() const { return index_; }
    /// Name in messages: "remote device 2 (cpu on hosta:7653)".
    [[nodiscard]] const std::string &label() const { return label_; }

    /// See session_control.
    [[nodiscard]] bool has_failed() const;
    [[nodiscard]] session_control &session() { return *session_; }
    [[nodiscard]] const session_control &session() const { return *session_; }
    /// session_control::take_call_error.
    std::optional<call_error> take_call_error();
    [[nodiscard]] const session_output &output() const { return *output_; }
    /// The device's slot of the arena: puts and gets reach this memory.
    [[nodiscard]] device_memory &slot() { return slot_; }
    [[nodiscard]] const own_memory &memory() const { return memory_; }
    [[nodiscard]] deferred_work &deferred() { return deferred_; }

    /// Allocates memory of the device. Blocks for a round trip if the session allocates. Errors:
    /// OMPX_ERR_NOMEM.
    result<std::uint64_t> allocate(std::size_t nbytes);
    /// Allocates the segment of a device whose session has a runtime of regions. Blocks for a round
    /// trip. At `preferred` if the driver can. 0: it has none of this size.
    std::uint64_t allocate_segment(std::size_t nbytes, std::uint64_t preferred);
    /// Whether there is one. Does not block.
    [[nodiscard]] bool has_segment() const { return segment_.load() != 0; }
    /// Frees an allocation. False: no allocation begins at this address.
    bool release(std::uint64_t address);
    /// OMPX_ERR_RANGE unless the range lies in allocated memory or may lie in a variable of an
    /// image. The session checks again.
    status check(std::uint64_t address, std::size_t nbytes) const;

    /// Loads an image. Returns the addresses of the symbols; 0 for symbols that the image does not
    /// define. Blocks.
    result<std::vector<std::uint64_t>> load(std::string_view image,
                                            const std::vector<symbol> &symbols);

    /// Handles a received frame, in the client's thread. False: the connection has ended.
    bool handle_frame(std::string_view packet);

private:
    result<std::vector<std::uint64_t>> load_image(std::string_view image,
                                                  const std::vector<symbol> &symbols);
    /// Requests to the session's allocator: frame::allocate, segment or release.
    result<std::uint64_t> call_allocator(frame what, std::initializer_list<std::uint64_t> values);

    device_description description_;
    std::size_t index_;
    world_rank rank_{0};
    std::string label_;
    client_observer *observer_ = nullptr; ///< the client's
    std::unique_ptr<session_control> const session_;
    std::unique_ptr<session_output> const output_;
    device_memory slot_;
    own_memory memory_;                     ///< outside the slot
    std::atomic<std::uint64_t> segment_{0}; ///< allocate_segment; 0: none
    deferred_work deferred_;
};

} // namespace diomp::offload::remote
