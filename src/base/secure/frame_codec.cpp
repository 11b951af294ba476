// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/secure/frame_codec.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace diomp::secure {
namespace {

constexpr std::size_t min_space_bytes = 4096;

std::array<unsigned char, frame_header_bytes> write_length(std::size_t nbytes) {
    std::array<unsigned char, frame_header_bytes> header{};
    for (unsigned i = 0; i < frame_header_bytes; ++i) {
        header[i] = static_cast<unsigned char>(nbytes >> (8 * i));
    }
    return header;
}

std::span<const unsigned char> bytes_of(std::string_view text) {
    return {reinterpret_cast<const unsigned char *>(text.data()), text.size()};
}

} // namespace

std::size_t read_frame_length(std::span<const unsigned char, frame_header_bytes> header) {
    std::size_t nbytes = 0;
    for (unsigned i = 0; i < frame_header_bytes; ++i) {
        nbytes |= static_cast<std::size_t>(header[i]) << (8 * i);
    }
    return nbytes;
}

void frame_encoder::append(std::string &to, std::string_view payload) {
    std::size_t const before = to.size();
    to.resize(before + frame_bytes(payload.size()));
    write(reinterpret_cast<unsigned char *>(to.data() + before), bytes_of(payload));
}

void frame_encoder::write(unsigned char *into, std::span<const unsigned char> payload) {
    auto const header = write_length(payload.size());
    std::ranges::copy(header, into);
    into += header.size();
    ++num_frames_;
    if (cipher_) {
        cipher_->seal(header, payload, into);
    } else {
        std::ranges::copy(payload, into);
    }
}

void frame_encoder::skip_to(std::uint64_t num_frames) {
    if (cipher_) {
        cipher_->skip_to(num_frames);
    }
    num_frames_ = num_frames;
}

std::span<unsigned char> frame_decoder::space() {
    if (begin_ > 0) {
        std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
        end_ -= begin_;
        begin_ = 0;
    }
    if (buffer_.size() - end_ < min_space_bytes) {
        buffer_.resize(std::max(2 * end_, end_ + min_space_bytes));
    }
    return std::span(buffer_).subspan(end_);
}

std::optional<std::string_view> frame_decoder::next() {
    if (is_broken_ || end_ - begin_ < frame_header_bytes) {
        return std::nullopt;
    }
    unsigned char *const header = buffer_.data() + begin_;
    std::size_t const payload_bytes = read_frame_length(
        std::span<const unsigned char, frame_header_bytes>(header, frame_header_bytes));
    if (payload_bytes == 0 || payload_bytes > max_bytes_) {
        is_broken_ = true;
        return std::nullopt;
    }
    std::size_t const nbytes = bytes_after(payload_bytes);
    if (end_ - begin_ - frame_header_bytes < nbytes) {
        return std::nullopt;
    }
    unsigned char *const payload = header + frame_header_bytes;
    if (cipher_ && !cipher_->open({header, frame_header_bytes}, {payload, nbytes}, payload)) {
        is_broken_ = true;
        return std::nullopt;
    }
    begin_ += frame_header_bytes + nbytes;
    return std::string_view(reinterpret_cast<const char *>(payload), payload_bytes);
}

} // namespace diomp::secure
