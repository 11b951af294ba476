// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The byte stream of an encrypted connection: sent data is sealed in records, received records are
// opened.
//
// The stream inside is that of a plain connection; record boundaries have no meaning. Two records
// are sent at a time, so that the receiver opens them while the sender seals the next ones.
#pragma once

#include "base/secure/frame_codec.h"
#include "base/secure/handshake.h"

#include <cstddef>
#include <span>
#include <string_view>
#include <sys/types.h>
#include <sys/uio.h>
#include <vector>

namespace diomp::transport::tcp {

/// One writer and one reader at a time; both may run concurrently.
class sealed_stream {
public:
    /// Maximum payload of a record: small enough to stay in a core's cache and to overlap.
    static constexpr std::size_t record_bytes = std::size_t{64} * 1024;

    explicit sealed_stream(secure::session_keys proven);

    // Writing.
    /// True if sealed data has not been sent.
    [[nodiscard]] bool has_unsent() const { return sent_ < end_; }
    /// True if more data is to be sealed before the next send_some().
    [[nodiscard]] bool has_space() const { return end_ < min_send_bytes; }
    /// Seals bytes from the beginning of `data` and returns their number; they may be reused then.
    /// Requires has_space().
    [[nodiscard]] std::size_t seal(std::span<const std::byte> data);
    /// Sends sealed data; returns the result of ::send.
    ssize_t send_some(int socket);
    /// Drops unsent data of a connection that has failed.
    void discard_unsent() { sent_ = end_ = 0; }

    // Reading.
    /// Fills the buffers in order and returns the number of bytes, or the result of ::recv. Reads
    /// from the socket only if `may_receive`. EBADMSG: a record fails authentication.
    ssize_t receive(int socket, std::span<const iovec> buffers, bool may_receive);
    /// True if receive() has returned all bytes that were read from the socket.
    [[nodiscard]] bool is_drained() const { return is_drained_; }
    /// True if a record failed authentication: bytes were changed, removed or added in transit.
    [[nodiscard]] bool is_broken() const { return decoder_.is_broken(); }

private:
    /// Bytes per call of ::send, if that many are available.
    static constexpr std::size_t min_send_bytes = 2 * record_bytes;

    /// Opens the next complete record. False: there is none.
    bool decrypt_next();
    ssize_t receive_more(int socket, bool &may_receive);

    secure::frame_encoder encoder_;
    std::vector<unsigned char> out_;
    std::size_t sent_ = 0;
    std::size_t end_ = 0; ///< of the sealed data
    secure::frame_decoder decoder_;
    std::string_view plaintext_; ///< the unread rest of the last record, in the decoder
    bool is_drained_ = true;
};

} // namespace diomp::transport::tcp
