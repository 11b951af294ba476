// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// AES-256-GCM by OpenSSL's libcrypto, for connections with much data: it uses wider vector
// instructions than libsodium. The bytes on the wire are identical.
#pragma once

#include "base/secure/secret.h"

#include <memory>
#include <span>

namespace diomp::secure {

/// One direction of a connection. Not thread-safe.
class bulk_aes {
public:
    static constexpr std::size_t tag_bytes = 16;
    static constexpr std::size_t nonce_bytes = 12;
    using nonce = std::span<const unsigned char, nonce_bytes>;

    /// The first call of the process opens the library, which takes some milliseconds. nullptr: the
    /// system has no libcrypto of OpenSSL 3, or it refuses the cipher.
    static std::unique_ptr<bulk_aes> create(const connection_key &key);
    bulk_aes(const bulk_aes &) = delete;
    bulk_aes &operator=(const bulk_aes &) = delete;
    ~bulk_aes();

    /// Encrypts `text`. `into` has tag_bytes more than `text`, and may begin where `text` does.
    void seal(nonce number, std::span<const unsigned char> header,
              std::span<const unsigned char> text, unsigned char *into);
    /// Decrypts `message`. `into` has tag_bytes less than `message`, and may begin where `message`
    /// does. False: the message was changed, or has another number; `into` then contains no
    /// plaintext.
    [[nodiscard]] bool open(nonce number, std::span<const unsigned char> header,
                            std::span<const unsigned char> message, unsigned char *into);

private:
    explicit bulk_aes(void *context) : context_(context) {}

    void *context_; ///< EVP_CIPHER_CTX
};

} // namespace diomp::secure
