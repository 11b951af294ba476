// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "conduit/tcp/sealed_stream.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/socket.h>

namespace diomp::conduit::tcp {

sealed_stream::sealed_stream(secure::session proven)
    : encoder_(std::move(proven.sending)), decoder_(std::move(proven.receiving), record_bytes) {}

std::size_t sealed_stream::seal(std::span<const std::byte> data) {
    auto const part = data.first(std::min(data.size(), record_bytes));
    std::size_t const nbytes = encoder_.frame_bytes(part.size());
    if (out_.size() < end_ + nbytes) {
        out_.resize(end_ + nbytes);
    }
    encoder_.write(out_.data() + end_,
                   {reinterpret_cast<const unsigned char *>(part.data()), part.size()});
    end_ += nbytes;
    return part.size();
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

bool sealed_stream::open_next() {
    auto const next = decoder_.next();
    opened_ = next.value_or(std::string_view());
    is_drained_ = !next && !decoder_.is_broken();
    return next.has_value();
}

ssize_t sealed_stream::receive(int socket, std::span<const iovec> parts, bool may_receive) {
    ssize_t num_given = 0;
    for (iovec const &part : parts) {
        std::size_t at = 0;
        while (at < part.iov_len) {
            if (opened_.empty() && !open_next()) {
                ssize_t const got = receive_more(socket, may_receive);
                if (got <= 0) {
                    return num_given > 0 ? num_given : got;
                }
                continue;
            }
            std::size_t const nbytes = std::min(part.iov_len - at, opened_.size());
            std::memcpy(static_cast<std::byte *>(part.iov_base) + at, opened_.data(), nbytes);
            opened_.remove_prefix(nbytes);
            at += nbytes;
            num_given += static_cast<ssize_t>(nbytes);
        }
    }
    return num_given;
}

/// As ::recv into the decoder. Ends `may_receive` when the socket had no more: asking it again
/// would cost a call of the system for nothing.
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

} // namespace diomp::conduit::tcp
