// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Images received by the sessions of a service, in memfds, so that nothing remains after the
// service has ended in any way. A session creates the memfd, enters it into a table in shared
// memory and sends the descriptor to the service, which keeps the image from then on. Other
// sessions look it up in the table and open it through /proc.
#pragma once

#include "base/result.h"
#include "base/unique_fd.h"
#include "offload/remote/protocol.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace diomp::offload::service {

/// A write-protected memfd with this content, which can be loaded as a library if the system allows
/// that.
result<unique_fd> make_image_memory(std::string_view content);
/// A path by which this process and debuggers can open a descriptor.
[[nodiscard]] std::string path_of(const unique_fd &memory);

/// Created by a service before its sessions. Sessions and the service may call it concurrently.
class image_store {
public:
    static result<std::unique_ptr<image_store>> create();
    ~image_store();
    image_store(const image_store &) = delete;
    image_store &operator=(const image_store &) = delete;

    // Called in a session.
    /// From now on this session shares no image with others: it may not open their descriptors, and
    /// does not trust them.
    void stop_sharing() { is_private_ = true; }
    /// The image, if a session has received it.
    [[nodiscard]] std::optional<unique_fd> find(const remote::image_id &id) const;
    /// Adds an image. Errors: OMPX_ERR_ARG: it does not match its id; OMPX_ERR_SYSTEM.
    result<unique_fd> add(const remote::image_id &id, std::string_view image);

    // Called in the service.
    /// Descriptor that is readable when take() has something to receive.
    [[nodiscard]] int incoming() const { return from_sessions_.get(); }
    /// Receives the descriptors of images that sessions have added. Does not block.
    void take();

private:
    struct table;
    image_store() = default;

    table *table_ = nullptr; ///< shared
    unique_fd from_sessions_;
    unique_fd to_service_;
    std::vector<unique_fd> descriptors_; ///< kept by the service
    bool is_private_ = false;
};

} // namespace diomp::offload::service
