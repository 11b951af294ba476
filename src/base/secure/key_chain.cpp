// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/secure/key_chain.h"

#include <sodium.h>

namespace diomp::secure {
namespace {

constexpr std::size_t nonce_bytes = crypto_aead_xchacha20poly1305_ietf_NPUBBYTES;
static_assert(nonce_bytes + crypto_aead_xchacha20poly1305_ietf_ABYTES == seal_bytes);
static_assert(crypto_aead_xchacha20poly1305_ietf_KEYBYTES == key_bytes);

} // namespace

key_chain::key_chain(const secret &key, std::string_view context) {
    crypto_generichash(state_.data(), key_bytes,
                       reinterpret_cast<const unsigned char *>(context.data()), context.size(),
                       key.bytes().data(), key_bytes);
}

connection_key key_chain::hash(kind what, std::span<const unsigned char> bytes) const {
    crypto_generichash_state state;
    auto const first = static_cast<unsigned char>(what);
    connection_key made;
    crypto_generichash_init(&state, state_.data(), key_bytes, key_bytes);
    crypto_generichash_update(&state, &first, 1);
    crypto_generichash_update(&state, bytes.data(), bytes.size());
    crypto_generichash_final(&state, made.data(), key_bytes);
    sodium_memzero(&state, sizeof(state));
    return made;
}

connection_key key_chain::derive(std::string_view label) const {
    return hash(kind::label, {reinterpret_cast<const unsigned char *>(label.data()), label.size()});
}

void seal(const connection_key &key, std::span<const unsigned char> text,
          std::span<unsigned char> message) {
    unsigned char *const nonce = message.data();
    randombytes_buf(nonce, nonce_bytes);
    crypto_aead_xchacha20poly1305_ietf_encrypt(nonce + nonce_bytes, nullptr, text.data(),
                                               text.size(), nullptr, 0, nullptr, nonce, key.data());
}

bool open(const connection_key &key, std::span<const unsigned char> message,
          std::span<unsigned char> text) {
    const unsigned char *const nonce = message.data();
    bool const is_genuine = crypto_aead_xchacha20poly1305_ietf_decrypt(
                                text.data(), nullptr, nullptr, nonce + nonce_bytes,
                                message.size() - nonce_bytes, nullptr, 0, nonce, key.data()) == 0;
    if (!is_genuine) {
        sodium_memzero(text.data(), text.size());
    }
    return is_genuine;
}

static_assert(key_bytes == crypto_scalarmult_BYTES);

void ephemeral_keys::generate() { crypto_box_keypair(own_public_.data(), own_private_.data()); }

bool ephemeral_keys::mix_into(key_chain &chain) {
    connection_key shared;
    bool const is_good =
        crypto_scalarmult(shared.data(), own_private_.data(), peer_public_.data()) == 0;
    chain.absorb_key(shared);
    erase({own_private_.data(), key_bytes});
    return is_good;
}

} // namespace diomp::secure
