// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A key that both sides of a connection know and that must stay secret: a job's or a service's.
#pragma once

#include "base/result.h"

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace diomp::secure {

inline constexpr std::size_t key_bytes = 32;

/// Initialises the cryptographic library. Any thread, any number of times; panics if the library
/// cannot work (no random numbers).
void start_library();

/// 256 bits in pages of their own: locked and excluded from core files if the system permits,
/// between guard pages, zeroed before they are freed. The class has no output function, so that a
/// secret cannot be printed by accident.
class secret {
public:
    /// Generated from the system's random numbers.
    [[nodiscard]] static secret random();
    /// The hash of a text such as a service's token. All its entropy comes from the text: a text
    /// that a person made up can be guessed from one recorded connection.
    [[nodiscard]] static secret from_text(std::string_view text);
    /// Parses a text from encode(). OMPX_ERR_ARG: it is not such a text.
    [[nodiscard]] static result<secret> decode(std::string_view text);

    /// 64 hexadecimal digits, to pass the secret to another process. The caller zeroes them
    /// (erase()) after use.
    [[nodiscard]] std::string encode() const;
    [[nodiscard]] secret clone() const;
    [[nodiscard]] std::span<const unsigned char, key_bytes> bytes() const {
        return std::span<const unsigned char, key_bytes>(bytes_.get(), key_bytes);
    }
    /// Compares in constant time.
    [[nodiscard]] bool operator==(const secret &other) const;

private:
    struct release {
        void operator()(unsigned char *bytes) const;
    };
    secret();

    std::unique_ptr<unsigned char[], release> bytes_;
};

/// Zeroes memory; the compiler does not remove it.
void erase(std::span<unsigned char> bytes);
void erase(std::string &text);

/// An array that is zeroed by its destructor. For keys of one connection.
template <std::size_t N>
class erased_array {
public:
    erased_array() = default;
    erased_array(const erased_array &) = default;
    erased_array &operator=(const erased_array &) = default;
    ~erased_array() { erase(bytes_); }

    [[nodiscard]] unsigned char *data() { return bytes_.data(); }
    [[nodiscard]] const unsigned char *data() const { return bytes_.data(); }
    static constexpr std::size_t size() { return N; }

private:
    std::array<unsigned char, N> bytes_{};
};

using connection_key = erased_array<key_bytes>;

} // namespace diomp::secure
