// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The bytes of an encrypted connection: what leaves is sealed in records, what comes is opened.
//
// The stream inside is that of a plain connection; where records begin in it has no meaning. Two
// records leave at a time, so that the other end opens them while the next ones are being sealed.
#pragma once

#include "base/secure/frame_codec.h"
#include "base/secure/handshake.h"

#include <cstddef>
#include <span>
#include <string_view>
#include <sys/types.h>
#include <sys/uio.h>
#include <vector>

namespace diomp::conduit::tcp {

/// One thread writes and one reads at a time; both may at once.
class sealed_stream {
public:
    /// What a record holds at most: few enough to stay in a core's cache, and to overlap.
    static constexpr std::size_t record_bytes = std::size_t{64} * 1024;

    explicit sealed_stream(secure::session proven);

    // Writing.
    /// Something has been sealed and has not left.
    [[nodiscard]] bool has_unsent() const { return sent_ < end_; }
    /// Whether to seal more before the next send_some().
    [[nodiscard]] bool has_space() const { return end_ < least_sent_bytes; }
    /// Seals from the front of `data`, which is not used any more then. With has_space(). How much
    /// it was.
    [[nodiscard]] std::size_t seal(std::span<const std::byte> data);
    /// As ::send with what has been sealed.
    ssize_t send_some(int socket);
    /// The connection is over.
    void discard_unsent() { sent_ = end_ = 0; }

    // Reading.
    /// As ::recvmsg, with all parts filled if enough has come. Does not read from the socket
    /// without `may_receive`. EBADMSG: a record does not open.
    ssize_t receive(int socket, std::span<const iovec> parts, bool may_receive);
    /// Nothing has been read from the socket that receive() would give.
    [[nodiscard]] bool is_drained() const { return is_drained_; }
    /// A record did not open: bytes have been changed, left out or added on their way.
    [[nodiscard]] bool is_broken() const { return decoder_.is_broken(); }

private:
    /// What leaves in one call of the system, where there is so much.
    static constexpr std::size_t least_sent_bytes = 2 * record_bytes;

    /// Opens the next record that is there. False: none is.
    bool open_next();
    ssize_t receive_more(int socket, bool &may_receive);

    secure::frame_encoder encoder_;
    std::vector<unsigned char> out_;
    std::size_t sent_ = 0;
    std::size_t end_ = 0; ///< of what has been sealed
    secure::frame_decoder decoder_;
    std::string_view opened_; ///< the rest of the last record; in the decoder
    bool is_drained_ = true;
};

} // namespace diomp::conduit::tcp
