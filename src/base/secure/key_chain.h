// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Keys that depend on a secret and on all bytes exchanged so far.
#pragma once

#include "base/secure/secret.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

namespace diomp::secure {

/// A chain of keyed BLAKE2b-256: each step keys the hash with the result of the step before, and
/// its first byte is the kind of the step. Two chains agree only if their secrets, contexts and all
/// absorbed bytes are equal.
class key_chain {
public:
    key_chain(const secret &key, std::string_view context);

    /// Absorbs bytes that both sides have seen.
    void absorb(std::span<const unsigned char> bytes) { step(kind::message, bytes); }
    /// Absorbs a key that both sides have computed.
    void absorb_key(const connection_key &shared) {
        step(kind::shared_key, {shared.data(), connection_key::size()});
    }
    /// Derives a key for one use; the chain is unchanged.
    [[nodiscard]] connection_key derive(std::string_view label) const;

private:
    enum class kind : unsigned char { message = 1, shared_key = 2, label = 3 };

    [[nodiscard]] connection_key hash(kind what, std::span<const unsigned char> bytes) const;
    void step(kind what, std::span<const unsigned char> bytes) { state_ = hash(what, bytes); }

    connection_key state_;
};

/// Additional bytes of a sealed message: a random nonce and a tag.
inline constexpr std::size_t seal_bytes = 24 + 16;

/// Encrypts and authenticates `text` into `message`, which has seal_bytes more
/// (XChaCha20-Poly1305). The nonce is random and long enough for any number of messages under one
/// key. The message cannot be distinguished from random bytes without the key.
void seal(const connection_key &key, std::span<const unsigned char> text,
          std::span<unsigned char> message);
/// Decrypts `message` into `text`. False, with `text` zeroed, unless the message was sealed with
/// this key and is unchanged.
[[nodiscard]] bool open(const connection_key &key, std::span<const unsigned char> message,
                        std::span<unsigned char> text);

/// The key agreement of a handshake (X25519): this side's pair of keys, used for one connection
/// only, and the peer's public key.
class ephemeral_keys {
public:
    void generate();
    /// Zeros until generate().
    [[nodiscard]] std::span<const unsigned char, key_bytes> own_public() const {
        return own_public_;
    }
    void set_peer_public(const unsigned char *key) {
        std::copy_n(key, key_bytes, peer_public_.begin());
    }
    /// Adds the secret that both sides compute from their keys, and erases the private key. False:
    /// the peer's key is one of the few for which every exchange has the same result.
    [[nodiscard]] bool mix_into(key_chain &chain);

private:
    connection_key own_private_;
    std::array<unsigned char, key_bytes> own_public_{};
    std::array<unsigned char, key_bytes> peer_public_{};
};

} // namespace diomp::secure
