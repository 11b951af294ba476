// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Owner of one file descriptor.
#pragma once

#include <unistd.h>
#include <utility>

namespace diomp {

class unique_fd {
public:
    unique_fd() = default;
    explicit unique_fd(int fd) : fd_(fd) {}
    unique_fd(unique_fd &&other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    unique_fd &operator=(unique_fd &&other) noexcept {
        if (this != &other) {
            reset();
            fd_ = other.release();
        }
        return *this;
    }
    ~unique_fd() { reset(); }

    void reset() {
        if (valid()) {
            ::close(release());
        }
    }
    [[nodiscard]] int get() const { return fd_; }
    [[nodiscard]] bool valid() const { return fd_ >= 0; }
    explicit operator bool() const { return valid(); }
    int release() { return std::exchange(fd_, -1); }

private:
    int fd_ = -1;
};

} // namespace diomp
