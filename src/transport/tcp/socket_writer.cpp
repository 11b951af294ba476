// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/tcp/socket_writer.h"

#include <cerrno>
#include <sys/socket.h>

namespace diomp::transport::tcp {

/// `is_all`: all bytes of the first items were written.
ssize_t socket_writer::write_plain(int socket, bool &is_all) {
    std::array<iovec, max_iovecs> iovecs;
    std::size_t wanted = 0;
    msghdr message{};
    message.msg_iov = iovecs.data();
    message.msg_iovlen = items_.describe(iovecs, wanted);
    ssize_t const written = ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (written > 0) {
        items_.consume(static_cast<std::size_t>(written), spare_);
    }
    is_all = written == static_cast<ssize_t>(wanted);
    return written;
}

/// Seals and writes one record, or a few short ones.
ssize_t socket_writer::write_sealed(int socket, sealed_stream &sealed, bool &is_all) {
    if (!sealed.has_unsent()) {
        while (!items_.empty() && sealed.has_space()) {
            items_.consume(sealed.seal(items_.front()), spare_);
        }
    }
    ssize_t const written = sealed.send_some(socket);
    is_all = !sealed.has_unsent();
    return written;
}

ssize_t socket_writer::write(byte_stream &to) {
    bool is_all = false;
    ssize_t const written = to.sealed() == nullptr ? write_plain(to.fd(), is_all)
                                                   : write_sealed(to.fd(), *to.sealed(), is_all);
    is_full_.store(!is_all, std::memory_order_relaxed);
    return written;
}

void socket_writer::discard(byte_stream &to) {
    items_.discard();
    if (to.sealed() != nullptr) {
        to.sealed()->discard_unsent();
    }
}

} // namespace diomp::transport::tcp
