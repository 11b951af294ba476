// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/secure/secret.h"

#include "base/panic.h"

#include <cstring>
#include <sodium.h>

namespace diomp::secure {

void start_library() {
    // The library is thread-safe here, and later calls return at once.
    if (sodium_init() < 0) {
        panic("libsodium cannot start: the system has no random numbers");
    }
}

secret::secret() {
    start_library();
    bytes_.reset(static_cast<unsigned char *>(sodium_malloc(key_bytes)));
    if (bytes_ == nullptr) {
        panic("no memory for a secret");
    }
}

void secret::release::operator()(unsigned char *bytes) const { sodium_free(bytes); }

secret secret::random() {
    secret made;
    randombytes_buf(made.bytes_.get(), key_bytes);
    return made;
}

secret secret::from_text(std::string_view text) {
    static constexpr std::string_view label = "DiOMP secret from text";
    secret made;
    crypto_generichash(made.bytes_.get(), key_bytes,
                       reinterpret_cast<const unsigned char *>(text.data()), text.size(),
                       reinterpret_cast<const unsigned char *>(label.data()), label.size());
    return made;
}

result<secret> secret::decode(std::string_view text) {
    secret made;
    std::size_t num_decoded = 0;
    if (text.size() != 2 * key_bytes ||
        sodium_hex2bin(made.bytes_.get(), key_bytes, text.data(), text.size(), nullptr,
                       &num_decoded, nullptr) != 0 ||
        num_decoded != key_bytes) {
        return error(OMPX_ERR_ARG, "a secret is not 64 hexadecimal digits");
    }
    return made;
}

std::string secret::encode() const {
    std::string text(2 * key_bytes + 1, '\0');
    sodium_bin2hex(text.data(), text.size(), bytes_.get(), key_bytes);
    text.pop_back();
    return text;
}

secret secret::clone() const {
    secret made;
    std::memcpy(made.bytes_.get(), bytes_.get(), key_bytes);
    return made;
}

bool secret::operator==(const secret &other) const {
    return sodium_memcmp(bytes_.get(), other.bytes_.get(), key_bytes) == 0;
}

void erase(std::span<unsigned char> bytes) { sodium_memzero(bytes.data(), bytes.size()); }

void erase(std::string &text) {
    sodium_memzero(text.data(), text.size());
    text.clear();
}

} // namespace diomp::secure
