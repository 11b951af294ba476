// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A message over a Unix socket with space for file descriptors beside its bytes.
#pragma once

#include "base/unique_fd.h"

#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <sys/socket.h>
#include <utility>
#include <vector>

namespace diomp {

/// For one sendmsg or recvmsg with at most `MaxFds` descriptors. The caller owns the bytes.
template <std::size_t MaxFds>
class descriptors_message {
public:
    descriptors_message(void *bytes, std::size_t nbytes) : iov_{bytes, nbytes} {
        message_.msg_iov = &iov_;
        message_.msg_iovlen = 1;
        message_.msg_control = control_.data();
        message_.msg_controllen = control_.size();
    }
    descriptors_message(const descriptors_message &) = delete;
    descriptors_message &operator=(const descriptors_message &) = delete;

    [[nodiscard]] msghdr *header() { return &message_; }

    /// Call before sending: the receiver gets its own descriptors of the same files.
    void attach(std::span<const int> fds) {
        if (fds.empty()) {
            message_.msg_control = nullptr;
            message_.msg_controllen = 0;
            return;
        }
        message_.msg_controllen = CMSG_SPACE(fds.size_bytes());
        cmsghdr *const control = CMSG_FIRSTHDR(&message_);
        control->cmsg_level = SOL_SOCKET;
        control->cmsg_type = SCM_RIGHTS;
        control->cmsg_len = CMSG_LEN(fds.size_bytes());
        std::memcpy(CMSG_DATA(control), fds.data(), fds.size_bytes());
    }
    void attach(int fd) { attach({&fd, 1}); }

    /// Call once after receiving: the received descriptors, in order.
    [[nodiscard]] std::vector<unique_fd> take_all() {
        std::vector<unique_fd> taken;
        const cmsghdr *const control = CMSG_FIRSTHDR(&message_);
        if (control == nullptr || control->cmsg_level != SOL_SOCKET ||
            control->cmsg_type != SCM_RIGHTS) {
            return taken;
        }
        std::size_t const count = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < count; ++i) {
            int fd = -1;
            std::memcpy(&fd, CMSG_DATA(control) + i * sizeof(int), sizeof(fd));
            taken.emplace_back(fd);
        }
        return taken;
    }
    /// The only received descriptor; invalid if there is not exactly one.
    [[nodiscard]] unique_fd take() {
        std::vector<unique_fd> all = take_all();
        return all.size() == 1 ? std::move(all.front()) : unique_fd();
    }

private:
    iovec iov_;
    /// Aligned as cmsg(3) requires.
    alignas(cmsghdr) std::array<char, CMSG_SPACE(MaxFds * sizeof(int))> control_{};
    msghdr message_{};
};

using descriptor_message = descriptors_message<1>;

} // namespace diomp
