// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The byte stream of a connection.
#pragma once

#include "base/log.h"
#include "base/unique_fd.h"
#include "transport/tcp/sealed_stream.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <sys/socket.h>
#include <utility>

namespace diomp::transport::tcp {

/// Why a stream ends after a failed read or write. Memory of the program that cannot be accessed is
/// reported, since the transfer that fails only knows that the network has failed it.
inline std::string describe_failure(int code) {
    std::string const why = ::strerrordesc_np(code);
    if (code == EFAULT) {
        log(log_level::error,
            "memory that was passed to a transfer is unmapped or protected ({}): the connection to "
            "the other rank, which is not to blame, ends with it",
            why);
    }
    return why;
}

/// True for errors of a socket after which the call is to be repeated later.
constexpr bool is_transient(int code) {
    return code == EAGAIN || code == EWOULDBLOCK || code == EINTR;
}

/// True if the peer has closed the connection and all that it has sent has been read.
inline bool is_closed_by_peer(int socket) {
    char byte = 0;
    ssize_t const got = ::recv(socket, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT);
    return got == 0 || (got < 0 && !is_transient(errno));
}

/// A socket, and the encryption of its bytes if there is one. One writer and one reader at a time;
/// both may run concurrently.
class byte_stream {
public:
    byte_stream() = default;
    byte_stream(unique_fd socket, std::unique_ptr<sealed_stream> sealed)
        : socket_(std::move(socket)), sealed_(std::move(sealed)) {}

    [[nodiscard]] int fd() const { return socket_.get(); }
    /// nullptr: not encrypted.
    [[nodiscard]] sealed_stream *sealed() const { return sealed_.get(); }

    /// True if sealed data has not been sent.
    [[nodiscard]] bool has_unsent() const { return sealed_ != nullptr && sealed_->has_unsent(); }
    /// True if receive() has returned all bytes that were read from the socket.
    [[nodiscard]] bool is_drained() const { return sealed_ == nullptr || sealed_->is_drained(); }
    /// Fills the rest of a body, then a buffer, and returns the number of bytes, or the result of
    /// ::recv. Reads from the socket only if `may_receive` or if it is not encrypted.
    ssize_t receive(const iovec &body, const iovec &buffer, bool may_receive) {
        if (sealed_ == nullptr && body.iov_len == 0) {
            return ::recv(fd(), buffer.iov_base, buffer.iov_len, MSG_DONTWAIT);
        }
        std::array<iovec, 2> iovecs{{body, buffer}};
        if (sealed_ != nullptr) {
            return sealed_->receive(fd(), iovecs, may_receive);
        }
        msghdr message{};
        message.msg_iov = iovecs.data();
        message.msg_iovlen = iovecs.size();
        return ::recvmsg(fd(), &message, MSG_DONTWAIT);
    }

private:
    unique_fd socket_;
    std::unique_ptr<sealed_stream> sealed_;
};

} // namespace diomp::transport::tcp
