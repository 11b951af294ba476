// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Mutual authentication of the two sides of a connection: both prove that they know a secret, and
// which party they are.
//
// Works on bytes only, without sockets and clocks. docs/security.md lists its guarantees. It is
// modelled on Noise's pattern NNpsk0 (noiseprotocol.org, revision 34, section 9), with the
// ephemeral keys encrypted too, so that every message looks random:
//
//   key chain: H(secret; label, purpose, responder's role and number)
//   1. initiator -> responder   seal(ephemeral key, own role, number, version, ciphers, protection)
//   2. responder -> initiator   seal(ephemeral key, decision, version, cipher, protection)
//   3. initiator -> responder   seal(nothing), under a key that depends on both ephemeral keys
//
// The key of each message depends on all messages before it, and so on the random nonces of both
// sides. Where neither side requests sealed bytes there is no key to protect from a later loss of
// the secret: the second message then has no ephemeral key, and the third depends on nonces only,
// which saves most of the handshake's time.
//
// The responder sends nothing unless the first message was sealed with the secret for this purpose
// and this responder. That message may be a replay; its sender then receives bytes that look random
// to it, and cannot produce the third message.
#pragma once

#include "base/secure/frame_cipher.h"
#include "base/secure/key_chain.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>

namespace diomp::secure {

enum class role : std::uint8_t { rank = 1, head, agent, client, service, session, launcher };

/// Purpose of a connection. A secret with several purposes authenticates each connection for its
/// own purpose only.
enum class purpose : std::uint8_t { transfers = 1, multihost_launch, device_service, local_launch };

struct party {
    role what{};
    std::uint32_t number = 0; ///< a rank, the index of an agent, ...; 0 if there is only one
    bool operator==(const party &) const = default;
};
/// "rank 3", "the head".
[[nodiscard]] std::string to_string(const party &who);

/// Parties of one role with numbers [first, first + count).
struct party_range {
    role what{};
    std::uint32_t first = 0;
    std::uint32_t count = 1;
    [[nodiscard]] bool contains(const party &who) const {
        return who.what == what && who.number >= first && who.number - first < count;
    }
};

/// Protection of bytes after the handshake. A connection uses the stronger one of those that its
/// two sides request.
enum class protection : std::uint8_t { plain = 1, sealed = 2 };

struct handshake_options {
    purpose why{};
    party self;
    std::uint32_t version =
        0; ///< version of the protocol after the handshake; must be equal on both sides
    protection wanted = protection::sealed;
};

/// Result of a completed handshake.
struct session_keys {
    party peer;
    protection mode = protection::sealed;
    frame_cipher sending;
    frame_cipher receiving;
};

/// The message of a handshake that is being received.
template <std::size_t MaxBytes>
class handshake_input {
public:
    /// Appends up to `max_bytes` of the bytes; returns their number.
    std::size_t append(std::span<const unsigned char> bytes, std::size_t max_bytes) {
        std::size_t const count = std::min(max_bytes, bytes.size());
        std::memcpy(bytes_.data() + received_, bytes.data(), count);
        received_ += count;
        return count;
    }
    /// The next bytes begin another message.
    void restart() { received_ = 0; }
    [[nodiscard]] std::size_t size() const { return received_; }
    [[nodiscard]] const std::array<unsigned char, MaxBytes> &bytes() const { return bytes_; }

private:
    std::array<unsigned char, MaxBytes> bytes_{};
    std::size_t received_ = 0;
};

/// The message of a handshake that is being sent.
template <std::size_t MaxBytes>
class handshake_output {
public:
    /// Space of a new message.
    [[nodiscard]] std::span<unsigned char> start(std::size_t nbytes) {
        nbytes_ = nbytes;
        sent_ = 0;
        return std::span(bytes_).first(nbytes);
    }
    [[nodiscard]] std::span<const unsigned char> unsent() const {
        return std::span(bytes_).first(nbytes_).subspan(std::min(sent_, nbytes_));
    }
    void discard(std::size_t nbytes) { sent_ += nbytes; }
    void clear() { nbytes_ = 0; }

private:
    std::array<unsigned char, MaxBytes> bytes_{};
    std::size_t nbytes_ = 0;
    std::size_t sent_ = 0;
};

class handshake {
public:
    /// The side that connects; `peer` is the party that it expects.
    [[nodiscard]] static handshake initiate(const secret &key, const handshake_options &options,
                                            const party &peer);
    /// The side that has accepted; `peers` are the parties that it expects.
    [[nodiscard]] static handshake respond(const secret &key, const handshake_options &options,
                                           const party_range &peers);

    enum class state : std::uint8_t {
        running,
        done,
        /// the peer does not know the secret, or its message is for another purpose or party
        unauthenticated,
        wrong_peer,    ///< knows the secret, but is not an expected party
        wrong_version, ///< knows the secret, but has another protocol version
    };

    /// Consumes bytes from the peer, never beyond the handshake; returns their number.
    std::size_t receive(std::span<const unsigned char> bytes);
    /// Bytes missing from the peer's next message; 0: none is expected.
    [[nodiscard]] std::size_t num_missing() const;
    /// Bytes to send to the peer, also after a failure: a peer that knows the secret then receives
    /// the reason.
    [[nodiscard]] std::span<const unsigned char> output() const { return out_.unsent(); }
    /// `nbytes` bytes of output() have been sent.
    void discard_output(std::size_t nbytes) { out_.discard(nbytes); }

    [[nodiscard]] state condition() const { return state_; }
    /// Whether a responder has received a first message that was sealed with the secret. It may
    /// still be a replay.
    [[nodiscard]] bool has_plausible_peer() const { return stage_ == stage::proof; }
    /// Description of a failure, without the peer's address.
    [[nodiscard]] std::string describe_failure() const;
    /// Call once, when done.
    [[nodiscard]] session_keys take_session_keys();

    static constexpr std::size_t body_bytes = 48;
    static constexpr std::size_t hello_bytes = seal_bytes + body_bytes;
    static constexpr std::size_t response_bytes = hello_bytes;
    static constexpr std::size_t proof_bytes = seal_bytes;

private:
    /// The next expected message.
    enum class stage : std::uint8_t { hello, response, proof, none };

    handshake(const secret &key, const handshake_options &options, const party &responder,
              stage first);
    [[nodiscard]] std::size_t message_bytes() const;
    void receive_hello();
    void receive_response();
    void receive_proof();
    void send_hello();
    void send_response(state decision);
    void send_body(const char *label, std::span<const unsigned char, body_bytes> text);
    void finish();
    void fail(state why);
    /// Whether the session's keys depend on ephemeral keys.
    [[nodiscard]] bool agrees_on_keys() const { return options_.wanted == protection::sealed; }

    handshake_options options_;
    party peer_;             ///< initiator: the expected peer; responder: set after the hello
    party_range expected_{}; ///< responder only
    key_chain chain_;
    stage stage_;
    state state_ = state::running;
    bool is_initiator_;
    ephemeral_keys keys_;
    cipher cipher_ = cipher::chacha20_poly1305;
    std::uint32_t peer_version_ = 0;
    handshake_input<hello_bytes> in_;
    handshake_output<hello_bytes> out_;
};

} // namespace diomp::secure
