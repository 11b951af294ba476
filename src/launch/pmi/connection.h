// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The socket to the launcher's process on this node: requests, replies, and word of its end.
#pragma once

#include "base/result.h"
#include "base/unique_fd.h"
#include "launch/pmi/text.h"

#include <string>

namespace diomp::launch::pmi {

class connection {
public:
    /// Takes the descriptor over, closed on exec from now on. Anything but a stream socket is an
    /// error and left alone.
    static result<connection> adopt(int fd);

    /// Sends a PMI-1 line and reads the line that answers it. `expected` is the reply's cmd.
    result<fields> ask_line(const fields &request, std::string_view expected);
    /// The same with PMI-2 messages.
    result<fields> ask_message(const fields &request, std::string_view expected);
    /// Sends only. Any thread.
    status send(std::string_view bytes);

    /// Readable when the launcher has closed its end; a reply does not make it so.
    [[nodiscard]] int watch_fd() const { return watch_.get(); }

private:
    connection(unique_fd socket, unique_fd watch)
        : socket_(std::move(socket)), watch_(std::move(watch)) {}

    /// Until the buffer holds `bytes`.
    status fill(std::size_t bytes);
    status receive();

    unique_fd socket_;
    unique_fd watch_;
    std::string buffer_; ///< received, not yet taken
};

} // namespace diomp::launch::pmi
