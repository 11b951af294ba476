// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/tcp/sealed_stream.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/socket.h>

namespace diomp::transport::tcp {

sealed_stream::sealed_stream(secure::session_keys proven)
    : encoder_(std::move(proven.sending)), decoder_(std::move(proven.receiving), record_bytes) {}

std::size_t sealed_stream::seal(std::span<const std::byte> data) {
    auto const chunk = data.first(std::min(data.size(), record_bytes));
    std::size_t const nbytes = encoder_.frame_bytes(chunk.size());
    if (out_.size() < end_ + nbytes) {
        out_.resize(end_ + nbytes);
    }
    encoder_.write(out_.data() + end_,
                   {reinterpret_cast<const unsigned char *>(chunk.data()), chunk.size()});
    end_ += nbytes;
    return chunk.size();
}

ssize_t sealed_stream::send_some(int socket) {
    ssize_t const sent =
        ::send(socket, out_.data() + sent_, end_ - sent_, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) {
        sent_ += static_cast<std::size_t>(sent);
    }
    if (!has_unsent()) {
        sent_ = end_ = 0;
    }
    return sent;
}

bool sealed_stream::decrypt_next() {
    auto const next = decoder_.next();
    plaintext_ = next.value_or(std::string_view());
    is_drained_ = !next && !decoder_.is_broken();
    return next.has_value();
}

ssize_t sealed_stream::receive(int socket, std::span<const iovec> buffers, bool may_receive) {
    ssize_t num_copied = 0;
    for (iovec const &chunk : buffers) {
        std::size_t at = 0;
        while (at < chunk.iov_len) {
            if (plaintext_.empty() && !decrypt_next()) {
                ssize_t const got = receive_more(socket, may_receive);
                if (got <= 0) {
                    return num_copied > 0 ? num_copied : got;
                }
                continue;
            }
            std::size_t const nbytes = std::min(chunk.iov_len - at, plaintext_.size());
            std::memcpy(static_cast<std::byte *>(chunk.iov_base) + at, plaintext_.data(), nbytes);
            plaintext_.remove_prefix(nbytes);
            at += nbytes;
            num_copied += static_cast<ssize_t>(nbytes);
        }
    }
    return num_copied;
}

/// Receives into the decoder; returns the result of ::recv. Clears `may_receive` when the socket is
/// empty, which saves a system call.
ssize_t sealed_stream::receive_more(int socket, bool &may_receive) {
    if (is_broken() || !may_receive) {
        errno = is_broken() ? EBADMSG : EAGAIN;
        return -1;
    }
    auto const space = decoder_.space();
    ssize_t const got = ::recv(socket, space.data(), space.size(), MSG_DONTWAIT);
    if (got > 0) {
        decoder_.commit(static_cast<std::size_t>(got));
        is_drained_ = false;
        may_receive = static_cast<std::size_t>(got) == space.size();
    }
    return got;
}

} // namespace diomp::transport::tcp
