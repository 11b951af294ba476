// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Frames on a stream of bytes, plain or sealed. No sockets in here.
//
//   plain    length (u32, little-endian)  payload
//   sealed   length (u32, little-endian)  encrypted payload  tag (16 bytes)
//
// The length counts the payload and is never 0; sealed frames authenticate it. A frame that does
// not open ends the stream: there is no way to find the next one.
#pragma once

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
/// Of a header.
[[nodiscard]] std::size_t
read_frame_length(std::span<const unsigned char, frame_header_bytes> header);

/// Not thread-safe.
class frame_encoder {
public:
    /// Without a cipher frames are plain.
    explicit frame_encoder(std::optional<frame_cipher> with) : cipher_(std::move(with)) {}
    /// Appends one frame; its payload has at least one byte and less than 4 GiB.
    void append(std::string &to, std::string_view payload);
    /// The same at a place with frame_bytes() of the payload's size.
    void write(unsigned char *into, std::span<const unsigned char> payload);
    [[nodiscard]] std::size_t frame_bytes(std::size_t payload_bytes) const {
        return frame_header_bytes + payload_bytes + (cipher_ ? frame_cipher::tag_bytes : 0);
    }
    /// Frames that have been appended, those that skip_to() leaves out included.
    [[nodiscard]] std::uint64_t num_frames() const { return num_frames_; }
    /// Goes on after `num_frames` frames, because another process has sent those after this one's
    /// with a copy of this encoder. Panics if it is below num_frames().
    void skip_to(std::uint64_t num_frames);

private:
    std::optional<frame_cipher> cipher_;
    std::uint64_t num_frames_ = 0;
};

/// Not thread-safe.
class frame_decoder {
public:
    /// Without a cipher frames are plain. Longer ones than `most_bytes` are an error.
    frame_decoder(std::optional<frame_cipher> with, std::size_t most_bytes)
        : cipher_(std::move(with)), most_bytes_(most_bytes) {}

    /// Where the next bytes of the stream go; never empty. The memory grows with what has come, not
    /// with what a header claims. Ends the life of what next() returned.
    [[nodiscard]] std::span<unsigned char> space();
    /// So many bytes have been written there.
    void commit(std::size_t nbytes) { end_ += nbytes; }
    /// The payload of the next frame, valid until space(); nullopt: it is not complete, or
    /// is_broken().
    [[nodiscard]] std::optional<std::string_view> next();
    /// A frame had a length that is not allowed, or was not sealed by the other end.
    [[nodiscard]] bool is_broken() const { return is_broken_; }
    void limit_frames(std::size_t most_bytes) { most_bytes_ = most_bytes; }

private:
    [[nodiscard]] std::size_t bytes_after(std::size_t payload_bytes) const {
        return payload_bytes + (cipher_ ? frame_cipher::tag_bytes : 0);
    }

    std::optional<frame_cipher> cipher_;
    std::size_t most_bytes_;
    std::vector<unsigned char> buffer_;
    std::size_t begin_ = 0; ///< of what has not been returned
    std::size_t end_ = 0;
    bool is_broken_ = false;
};

} // namespace diomp::secure
