// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/secure/frame_cipher.h"

#include "base/assert.h"
#include "base/panic.h"

#include <sodium.h>

namespace diomp::secure {
namespace {

/// Bytes that a connection transfers before OpenSSL is loaded for it; control connections stay
/// below.
constexpr std::size_t openssl_threshold_bytes = std::size_t{1} << 20;

constexpr std::uint8_t bit(cipher which) {
    return static_cast<std::uint8_t>(1U << static_cast<unsigned>(which));
}

} // namespace

struct frame_cipher::aes_key {
    crypto_aead_aes256gcm_state state;
};

void frame_cipher::erase_aes_key::operator()(aes_key *key) const {
    sodium_memzero(key, sizeof(*key));
    delete key;
}

std::uint8_t available_ciphers() {
    start_library();
    bool const has_aes = crypto_aead_aes256gcm_is_available() != 0;
    return static_cast<std::uint8_t>(bit(cipher::chacha20_poly1305) |
                                     (has_aes ? bit(cipher::aes256_gcm) : 0));
}

std::optional<cipher> choose_cipher(std::uint8_t ours, std::uint8_t theirs) {
    for (cipher const each : {cipher::aes256_gcm, cipher::chacha20_poly1305}) {
        if ((ours & theirs & bit(each)) != 0) {
            return each;
        }
    }
    return std::nullopt;
}

static_assert(frame_cipher::tag_bytes == crypto_aead_aes256gcm_ABYTES);
static_assert(frame_cipher::tag_bytes == crypto_aead_chacha20poly1305_ietf_ABYTES);
static_assert(key_bytes == crypto_aead_aes256gcm_KEYBYTES);
static_assert(key_bytes == crypto_aead_chacha20poly1305_ietf_KEYBYTES);

frame_cipher::frame_cipher(cipher which, const connection_key &key) : which_(which), key_(key) {
    if (which == cipher::aes256_gcm) {
        aes_key_.reset(new aes_key);
        crypto_aead_aes256gcm_beforenm(&aes_key_->state, key.data());
        bytes_until_openssl_ = openssl_threshold_bytes;
    }
}

void frame_cipher::write_nonce(unsigned char (&nonce)[nonce_bytes]) {
    static_assert(nonce_bytes == crypto_aead_aes256gcm_NPUBBYTES);
    static_assert(nonce_bytes == crypto_aead_chacha20poly1305_ietf_NPUBBYTES);
    DIOMP_ASSERT(number_ != UINT64_MAX, "a nonce is used once");
    std::uint64_t rest = number_++;
    for (unsigned char &each : nonce) {
        each = static_cast<unsigned char>(rest);
        rest >>= 8;
    }
}

bulk_aes *frame_cipher::bulk_for(std::size_t nbytes) {
    if (bytes_until_openssl_ > nbytes) {
        bytes_until_openssl_ -= nbytes;
    } else if (bytes_until_openssl_ > 0) {
        bytes_until_openssl_ = 0;
        bulk_ = bulk_aes::create(key_);
    }
    return bulk_.get();
}

void frame_cipher::seal(std::span<const unsigned char> header, std::span<const unsigned char> text,
                        unsigned char *into) {
    unsigned char nonce[nonce_bytes];
    write_nonce(nonce);
    if (bulk_aes *const bulk = bulk_for(text.size()); bulk != nullptr) {
        bulk->seal(nonce, header, text, into);
    } else if (which_ == cipher::aes256_gcm) {
        crypto_aead_aes256gcm_encrypt_afternm(into, nullptr, text.data(), text.size(),
                                              header.data(), header.size(), nullptr, nonce,
                                              &aes_key_->state);
    } else {
        crypto_aead_chacha20poly1305_ietf_encrypt(into, nullptr, text.data(), text.size(),
                                                  header.data(), header.size(), nullptr, nonce,
                                                  key_.data());
    }
}

void frame_cipher::skip_to(std::uint64_t number) {
    if (number < number_) {
        panic("a number of a sealed message would come again");
    }
    number_ = number;
}

bool frame_cipher::open(std::span<const unsigned char> header,
                        std::span<const unsigned char> message, unsigned char *into) {
    DIOMP_ASSERT(message.size() >= tag_bytes, "a sealed message has a tag");
    unsigned char nonce[nonce_bytes];
    write_nonce(nonce);
    if (bulk_aes *const bulk = bulk_for(message.size() - tag_bytes); bulk != nullptr) {
        return bulk->open(nonce, header, message, into);
    }
    if (which_ == cipher::aes256_gcm) {
        return crypto_aead_aes256gcm_decrypt_afternm(into, nullptr, nullptr, message.data(),
                                                     message.size(), header.data(), header.size(),
                                                     nonce, &aes_key_->state) == 0;
    }
    return crypto_aead_chacha20poly1305_ietf_decrypt(into, nullptr, nullptr, message.data(),
                                                     message.size(), header.data(), header.size(),
                                                     nonce, key_.data()) == 0;
}

} // namespace diomp::secure
