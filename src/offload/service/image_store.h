// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Images that sessions of a service have been sent: memory without a name in any file system, so
// that nothing is left of it when the service is gone, however it ends. A session makes it and says
// so in a table that all share; it also sends the descriptor to the service, which holds the image
// from then on. Another session finds it by the table and opens it by /proc.
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

/// Memory with that content which can be loaded as a library where the system allows that, and not
/// be written to.
result<unique_fd> make_image_memory(std::string_view content);
/// A path by which this process and its debuggers open a descriptor.
[[nodiscard]] std::string path_of(const unique_fd &memory);

/// Made by a service before its sessions. Calls of a session and of the service may come at the
/// same time.
class image_store {
public:
    static result<std::unique_ptr<image_store>> create();
    ~image_store();
    image_store(const image_store &) = delete;
    image_store &operator=(const image_store &) = delete;

    // In a session.
    /// The image if some session has been sent it.
    [[nodiscard]] std::optional<unique_fd> find(const remote::image_id &id) const;
    /// Keeps an image, which must be what its id says. OMPX_ERR_ARG, OMPX_ERR_SYSTEM.
    result<unique_fd> add(const remote::image_id &id, std::string_view image);

    // In the service.
    /// Readable when there is something to take.
    [[nodiscard]] int incoming() const { return from_sessions_.get(); }
    /// Takes over the images that sessions have. Does not block.
    void take();

private:
    struct table;
    image_store() = default;

    table *table_ = nullptr; ///< shared
    unique_fd from_sessions_;
    unique_fd to_service_;
    std::vector<unique_fd> held_; ///< by the service
};

} // namespace diomp::offload::service
