// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Encryption of one direction of a connection, with keys from its handshake.
#pragma once

#include "base/secure/bulk_aes.h"
#include "base/secure/secret.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace diomp::secure {

/// In order of preference; both ends have the first.
enum class cipher : std::uint8_t {
    chacha20_poly1305 = 1, ///< RFC 8439: any processor
    aes256_gcm = 2,        ///< where both ends have instructions for it
};

/// Those of this processor: bit 1 << cipher is set.
[[nodiscard]] std::uint8_t available_ciphers();
/// The best one of both; nullopt if there is none.
[[nodiscard]] std::optional<cipher> choose_cipher(std::uint8_t ours, std::uint8_t theirs);

/// One direction. Every message takes the next number as its nonce, so that a message that is
/// missing, repeated or out of order does not open. A key lasts for the connection: 2^64 messages
/// cannot be sent, and for 2^48 bytes under AES-256-GCM the chance to tell them from random ones
/// stays below 2^-38.
/// Not thread-safe.
class frame_cipher {
public:
    static constexpr std::size_t tag_bytes = 16;

    frame_cipher(cipher which, const connection_key &key);

    /// `into` has tag_bytes more than `text`, and may begin where `text` does. `header` is
    /// authenticated, not encrypted.
    void seal(std::span<const unsigned char> header, std::span<const unsigned char> text,
              unsigned char *into);
    /// `into` has tag_bytes less than `message` (which must have them), and may begin where
    /// `message` does. False: the message is not the next one that the other end has sealed;
    /// nothing may be opened after that.
    [[nodiscard]] bool open(std::span<const unsigned char> header,
                            std::span<const unsigned char> message, unsigned char *into);
    /// The next message has this number, because another process has sealed those before it with a
    /// copy of this key. A number that comes again would give both messages away: panics if it is
    /// below the next one.
    void skip_to(std::uint64_t number);

private:
    static constexpr std::size_t nonce_bytes = 12;
    /// The key as AES-256-GCM wants it: expanded, aligned.
    struct aes_key;
    struct erase_aes_key {
        void operator()(aes_key *key) const;
    };

    void write_nonce(unsigned char (&nonce)[nonce_bytes]);
    /// The one for messages of this connection; nullptr: libsodium's.
    [[nodiscard]] bulk_aes *bulk_for(std::size_t nbytes);

    cipher which_;
    connection_key key_;
    std::unique_ptr<aes_key, erase_aes_key> aes_key_;
    std::uint64_t number_ = 0;      ///< of the next message
    std::size_t left_of_small_ = 0; ///< bytes until the connection counts as one that carries much
    std::unique_ptr<bulk_aes> bulk_;
};

} // namespace diomp::secure
