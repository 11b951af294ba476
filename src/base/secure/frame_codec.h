// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Frames on a byte stream, plain or sealed. Independent of sockets.
//
//   plain    length (u32, little-endian)  payload
//   sealed   length (u32, little-endian)  encrypted payload  tag (16 bytes)
//
// The length is that of the payload and never 0; sealed frames authenticate it. A frame that fails
// to decrypt ends the stream: the start of the next one is unknown.
#pragma once

#include "base/assert.h"
#include "base/secure/frame_cipher.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace diomp::secure {

inline constexpr std::size_t frame_header_bytes = 4;
/// The most frames that a connection can ever have sent: centuries of them.
inline constexpr std::uint64_t max_frames = std::uint64_t{1} << 62U;
/// The payload length in a header.
[[nodiscard]] std::size_t
read_frame_length(std::span<const unsigned char, frame_header_bytes> header);

/// Not thread-safe.
class frame_encoder {
public:
    /// Encodes plain frames if there is no cipher.
    explicit frame_encoder(std::optional<frame_cipher> with) : cipher_(std::move(with)) {}
    /// Appends one frame; its payload has at least one byte and less than 4 GiB.
    void append(std::string &to, std::string_view payload);
    /// Writes one frame to `into`, which has frame_bytes() of the payload's size.
    void write(unsigned char *into, std::span<const unsigned char> payload);
    [[nodiscard]] std::size_t frame_bytes(std::size_t payload_bytes) const {
        return frame_header_bytes + payload_bytes + (cipher_ ? frame_cipher::tag_bytes : 0);
    }
    /// Number of frames so far, including those that skip_to() has skipped.
    [[nodiscard]] std::uint64_t num_frames() const { return num_frames_; }
    /// Continues after `num_frames` frames, because another process has sent the frames in between
    /// with a copy of this encoder. Panics if it is below num_frames().
    void skip_to(std::uint64_t num_frames);

private:
    std::optional<frame_cipher> cipher_;
    std::uint64_t num_frames_ = 0;
};

/// Not thread-safe.
class frame_decoder {
public:
    /// Decodes plain frames if there is no cipher. Payloads longer than `max_bytes` are an error.
    frame_decoder(std::optional<frame_cipher> with, std::size_t max_bytes)
        : cipher_(std::move(with)), max_bytes_(max_bytes) {}

    /// Buffer for the next bytes of the stream; never empty. The memory grows with the received
    /// bytes, not with the length that a header claims. Invalidates what next() returned.
    [[nodiscard]] std::span<unsigned char> space();
    /// `nbytes` bytes have been written to space().
    void commit(std::size_t nbytes) {
        DIOMP_ASSERT(nbytes <= buffer_.size() - end_,
                     "no more is received than there was space for");
        end_ += nbytes;
    }
    /// The payload of the next frame, valid until space(); nullopt: it is incomplete, or
    /// is_broken().
    [[nodiscard]] std::optional<std::string_view> next();
    /// A frame had an invalid length, or was not sealed by the peer.
    [[nodiscard]] bool is_broken() const { return is_broken_; }

private:
    [[nodiscard]] std::size_t bytes_after(std::size_t payload_bytes) const {
        return payload_bytes + (cipher_ ? frame_cipher::tag_bytes : 0);
    }

    std::optional<frame_cipher> cipher_;
    std::size_t max_bytes_;
    std::vector<unsigned char> buffer_;
    std::size_t begin_ = 0; ///< start of the bytes not yet returned
    std::size_t end_ = 0;
    bool is_broken_ = false;
};

} // namespace diomp::secure
