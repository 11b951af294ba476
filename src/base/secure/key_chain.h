// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Keys that depend on a secret and on everything that both ends have sent so far.
#pragma once

#include "base/secure/secret.h"

#include <span>
#include <string_view>

namespace diomp::secure {

/// A chain of keyed BLAKE2b-256: every step keys the hash with the result of the step before, and
/// its first byte says which kind of step it is. Two chains agree only if their secrets, contexts
/// and all absorbed bytes do.
class key_chain {
public:
    key_chain(const secret &key, std::string_view context);

    /// Bytes that both ends have seen.
    void absorb(std::span<const unsigned char> bytes) { step(kind::message, bytes); }
    /// A key that both ends have agreed on.
    void absorb_key(const connection_key &shared) {
        step(kind::shared_key, {shared.data(), connection_key::size()});
    }
    /// A key for one use; the chain stays as it is.
    [[nodiscard]] connection_key derive(std::string_view label) const;

private:
    enum class kind : unsigned char { message = 1, shared_key = 2, label = 3 };

    [[nodiscard]] connection_key hash(kind what, std::span<const unsigned char> bytes) const;
    void step(kind what, std::span<const unsigned char> bytes) { state_ = hash(what, bytes); }

    connection_key state_;
};

/// Bytes that a sealed message has more than its text: a random nonce and a tag.
inline constexpr std::size_t seal_bytes = 24 + 16;

/// Encrypts and authenticates `text` into `message`, which has seal_bytes more
/// (XChaCha20-Poly1305). The nonce is random and long enough that one key may serve any number of
/// messages. Without the key the message cannot be told from random bytes.
void seal(const connection_key &key, std::span<const unsigned char> text,
          std::span<unsigned char> message);
/// False, and `text` is zeroed, unless the message was sealed with this key and has not changed.
[[nodiscard]] bool open(const connection_key &key, std::span<const unsigned char> message,
                        std::span<unsigned char> text);

} // namespace diomp::secure
