// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The socket to the launcher's process on this node: requests, replies, and detection of its end.
#pragma once

#include "base/result.h"
#include "base/unique_fd.h"
#include "launch/pmi/text.h"

#include <string>

namespace diomp::launch::pmi {

class pmi_connection {
public:
    /// Takes ownership of the descriptor and sets FD_CLOEXEC. If it is not a stream socket, returns
    /// an error and leaves it unchanged.
    static result<pmi_connection> adopt(int fd);

    /// Sends a PMI-1 line and waits for the reply. `expected` is the reply's cmd.
    result<fields> query_line(const fields &request, std::string_view expected);
    /// Sends a PMI-2 message and waits for the reply. `expected` is the reply's cmd.
    result<fields> query_message(const fields &request, std::string_view expected);
    /// Sends without waiting for a reply. Any thread.
    status send(std::string_view bytes);

    /// Becomes readable when the launcher has closed the socket, but not by a reply.
    [[nodiscard]] int watch_fd() const { return watch_.get(); }

private:
    pmi_connection(unique_fd socket, unique_fd watch)
        : socket_(std::move(socket)), watch_(std::move(watch)) {}

    /// Receives until the buffer holds `bytes`.
    status fill(std::size_t bytes);
    status receive();

    unique_fd socket_;
    unique_fd watch_;
    std::string buffer_; ///< received, not yet parsed
};

} // namespace diomp::launch::pmi
