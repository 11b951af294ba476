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

/// In order of preference; every build supports the first.
enum class cipher : std::uint8_t {
    chacha20_poly1305 = 1, ///< RFC 8439: any processor
    aes256_gcm = 2,        ///< if both sides have instructions for it
};

/// Ciphers that this processor supports: bit 1 << cipher is set.
[[nodiscard]] std::uint8_t available_ciphers();
/// The best common cipher; nullopt if there is none.
[[nodiscard]] std::optional<cipher> choose_cipher(std::uint8_t ours, std::uint8_t theirs);

/// One direction of a connection. Each message uses the next number as its nonce, so that a
/// missing, repeated or reordered message fails to decrypt. A key lasts for the connection: 2^64
/// messages cannot be sent, and for 2^48 bytes under AES-256-GCM the advantage in distinguishing
/// them from random bytes stays below 2^-38. Not thread-safe.
class frame_cipher {
public:
    static constexpr std::size_t tag_bytes = 16;

    frame_cipher(cipher which, const connection_key &key);

    /// Encrypts `text`. `into` has tag_bytes more than `text`, and may begin where `text` does.
    /// `header` is authenticated, not encrypted.
    void seal(std::span<const unsigned char> header, std::span<const unsigned char> text,
              unsigned char *into);
    /// Decrypts `message`. `into` has tag_bytes less than `message` (which must have them), and may
    /// begin where `message` does. False: the message is not the next one that the peer has sealed;
    /// do not call open() again.
    [[nodiscard]] bool open(std::span<const unsigned char> header,
                            std::span<const unsigned char> message, unsigned char *into);
    /// Sets the number of the next message, because another process has sealed the messages before
    /// it with a copy of this key. A repeated number would reveal both messages: panics if it is
    /// below the current number.
    void skip_to(std::uint64_t number);

private:
    static constexpr std::size_t nonce_bytes = 12;
    /// The key in the form that AES-256-GCM needs: expanded, aligned.
    struct aes_key;
    struct erase_aes_key {
        void operator()(aes_key *key) const;
    };

    void write_nonce(unsigned char (&nonce)[nonce_bytes]);
    /// The OpenSSL cipher for this connection; nullptr: use libsodium's.
    [[nodiscard]] bulk_aes *bulk_for(std::size_t nbytes);

    cipher which_;
    connection_key key_;
    std::unique_ptr<aes_key, erase_aes_key> aes_key_;
    std::uint64_t number_ = 0;            ///< number of the next message
    std::size_t bytes_until_openssl_ = 0; ///< bytes until the connection switches to OpenSSL
    std::unique_ptr<bulk_aes> bulk_;
};

} // namespace diomp::secure
