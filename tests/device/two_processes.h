// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A second process for tests of shared memory, and the way of a shared_handle to it.
#pragma once

#include "device/device.h"

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace diomp::test {

/// Sizes and tokens as bytes, descriptors beside them; one message per handle.
inline bool send_handle(int socket, const device::shared_handle &handle) {
    struct words {
        std::uint64_t reserved;
        std::uint64_t num_extents;
    } const head{handle.reserved_bytes, handle.extents.size()};
    if (::send(socket, &head, sizeof(head), 0) != sizeof(head)) {
        return false;
    }
    for (device::shared_extent const &part : handle.extents) {
        struct {
            std::uint64_t offset, size;
            std::array<std::byte, 64> token;
        } text{part.offset_bytes, part.size_bytes, part.token};
        iovec data{&text, sizeof(text)};
        alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
        msghdr message{};
        message.msg_iov = &data;
        message.msg_iovlen = 1;
        if (part.fd.valid()) {
            message.msg_control = control;
            message.msg_controllen = sizeof(control);
            cmsghdr *const rights = CMSG_FIRSTHDR(&message);
            rights->cmsg_level = SOL_SOCKET;
            rights->cmsg_type = SCM_RIGHTS;
            rights->cmsg_len = CMSG_LEN(sizeof(int));
            *reinterpret_cast<int *>(CMSG_DATA(rights)) = part.fd.get();
        }
        if (::sendmsg(socket, &message, 0) != sizeof(text)) {
            return false;
        }
    }
    return true;
}

inline bool receive_handle(int socket, device::shared_handle &into) {
    std::uint64_t head[2];
    if (::recv(socket, head, sizeof(head), 0) != sizeof(head)) {
        return false;
    }
    into.reserved_bytes = head[0];
    into.extents.clear();
    for (std::uint64_t i = 0; i < head[1]; ++i) {
        struct {
            std::uint64_t offset, size;
            std::array<std::byte, 64> token;
        } text{};
        iovec data{&text, sizeof(text)};
        alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
        msghdr message{};
        message.msg_iov = &data;
        message.msg_iovlen = 1;
        message.msg_control = control;
        message.msg_controllen = sizeof(control);
        if (::recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != sizeof(text)) {
            return false;
        }
        device::shared_extent part{
            .offset_bytes = text.offset, .size_bytes = text.size, .fd = {}, .token = text.token};
        if (cmsghdr const *const rights = CMSG_FIRSTHDR(&message)) {
            part.fd = unique_fd(*reinterpret_cast<const int *>(CMSG_DATA(rights)));
        }
        into.extents.push_back(std::move(part));
    }
    return true;
}

/// The child's checks: prints and ends the child with a failure.
inline void require(bool condition, const char *what) {
    if (!condition) {
        std::fprintf(stderr, "second process: not so: %s\n", what);
        ::_exit(1);
    }
}

/// Runs `body` in a second process, forked from this one, with one end of a socket pair (of
/// messages) there and the other here.
class second_process {
public:
    explicit second_process(const std::function<void(int socket)> &body) {
        int ends[2];
        if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
            std::abort();
        }
        socket_ = unique_fd(ends[0]);
        unique_fd other(ends[1]);
        child_ = ::fork();
        if (child_ == 0) {
            socket_ = unique_fd(); // a parent that dies shall be seen
            ::alarm(30);
            body(other.get());
            ::_exit(0);
        }
    }
    ~second_process() {
        if (child_ > 0) {
            socket_ = unique_fd();
            exit_code();
        }
    }
    second_process(const second_process &) = delete;
    second_process &operator=(const second_process &) = delete;

    [[nodiscard]] int socket() const { return socket_.get(); }
    bool await_word() const {
        char word = 0;
        return ::recv(socket(), &word, 1, 0) == 1;
    }
    /// Waits for its end; -1 if it died.
    int exit_code() {
        int how = 0;
        ::waitpid(child_, &how, 0);
        child_ = -1;
        return WIFEXITED(how) ? WEXITSTATUS(how) : -1;
    }

private:
    unique_fd socket_;
    pid_t child_ = -1;
};

inline void say_word(int socket) { require(::send(socket, "x", 1, 0) == 1, "word sent"); }

} // namespace diomp::test
