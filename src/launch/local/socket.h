// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Descriptors, owned, and the two calls that carry one over a socket.
#pragma once

#include "base/result.h"

#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>

namespace diomp::launch::local {

/// Owns a file descriptor.
class unique_fd {
public:
    unique_fd() = default;
    explicit unique_fd(int fd) : fd_(fd) {}
    unique_fd(const unique_fd &) = delete;
    unique_fd &operator=(const unique_fd &) = delete;
    unique_fd(unique_fd &&other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    unique_fd &operator=(unique_fd &&other) noexcept {
        if (this != &other) {
            reset();
            fd_ = std::exchange(other.fd_, -1);
        }
        return *this;
    }
    ~unique_fd() { reset(); }

    void reset() {
        if (fd_ >= 0) {
            close(std::exchange(fd_, -1));
        }
    }
    [[nodiscard]] int get() const { return fd_; }
    explicit operator bool() const { return fd_ >= 0; }

private:
    int fd_ = -1;
};

struct packet_with_fd {
    std::string bytes;
    unique_fd descriptor;
};

/// Takes the packet that diomp-run left in the socket. Does not block: an empty socket is an error,
/// since the packet was there before the process started.
result<packet_with_fd> receive_with_fd(int socket);
/// Sends a packet and a copy of `descriptor`. Does not block.
status send_with_fd(int socket, std::string_view bytes, int descriptor);

} // namespace diomp::launch::local
