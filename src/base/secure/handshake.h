// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How the two ends of a connection prove to each other that they know a secret, and who they are.
//
// Bytes go in and come out; there are no sockets and no clocks in here. docs/security.md says what
// the exchange promises against whom. It is Noise's pattern NNpsk0 (noiseprotocol.org, revision 34,
// section 9) in shape, with the ephemeral keys encrypted too, so that every message looks random:
//
//   key chain: H(secret; label, purpose, responder's role and number)
//   1. initiator -> responder   seal(ephemeral key, own role, number, version, ciphers, protection)
//   2. responder -> initiator   seal(ephemeral key, verdict, version, cipher, protection)
//   3. initiator -> responder   seal(nothing), under a key that depends on both ephemeral keys
//
// Each message's key depends on all messages before it. The responder sends nothing to a peer whose
// first message was not made with the secret for this purpose and this responder. That message may
// be a recorded one; its sender then gets bytes that look random to it, and cannot make the third.
#pragma once

#include "base/secure/frame_cipher.h"
#include "base/secure/key_chain.h"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace diomp::secure {

enum class role : std::uint8_t { rank = 1, head, agent, client, service, session, launcher };

/// What a connection is for. A secret that serves several purposes opens each only for itself.
enum class purpose : std::uint8_t { transfers = 1, multihost_launch, device_service, local_launch };

struct party {
    role what{};
    std::uint32_t number = 0; ///< a rank, the index of an agent, ...; 0 where there is one only
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

/// What happens to bytes after the handshake. A connection has the stronger one that its ends ask
/// for.
enum class protection : std::uint8_t { plain = 1, sealed = 2 };

struct handshake_options {
    purpose why{};
    party self;
    std::uint32_t version =
        0; ///< of the protocol after the handshake; both ends must have the same
    protection wanted = protection::sealed;
};

/// What a completed handshake leaves.
struct session {
    party peer;
    protection mode = protection::sealed;
    frame_cipher sending;
    frame_cipher receiving;
};

class handshake {
public:
    /// The end that connects; `peer` is whom it means to reach.
    [[nodiscard]] static handshake initiate(const secret &key, const handshake_options &options,
                                            const party &peer);
    /// The end that has accepted; `peers` are those that it expects.
    [[nodiscard]] static handshake respond(const secret &key, const handshake_options &options,
                                           const party_range &peers);

    enum class state : std::uint8_t {
        running,
        done,
        not_proven,    ///< the peer does not know the secret, or was meant for something else
        wrong_peer,    ///< it has proved the secret, but is not one of the expected parties
        wrong_version, ///< it has proved the secret, and speaks another version
    };

    /// Takes bytes from the peer, never more than belong to the handshake; returns how many.
    std::size_t receive(std::span<const unsigned char> bytes);
    /// How many more bytes the next message of the peer has; 0: none is expected.
    [[nodiscard]] std::size_t num_missing() const;
    /// Bytes for the peer, also after a failure: it then learns the reason if it knows the secret.
    [[nodiscard]] std::span<const unsigned char> output() const;
    /// So many bytes of output() have been sent.
    void discard_output(std::size_t nbytes) { sent_ += nbytes; }

    [[nodiscard]] state condition() const { return state_; }
    /// A responder has received a first message that was made with the secret. It may still be a
    /// recorded one.
    [[nodiscard]] bool has_plausible_peer() const { return stage_ == stage::proof; }
    /// A sentence about a failure, without the peer's address.
    [[nodiscard]] std::string describe_failure() const;
    /// Once, when done.
    [[nodiscard]] session take_session();

    static constexpr std::size_t body_bytes = 48;
    static constexpr std::size_t hello_bytes = seal_bytes + body_bytes;
    static constexpr std::size_t answer_bytes = hello_bytes;
    static constexpr std::size_t proof_bytes = seal_bytes;

private:
    /// The message that is expected next.
    enum class stage : std::uint8_t { hello, answer, proof, none };
    using message = std::array<unsigned char, hello_bytes>;

    handshake(const secret &key, const handshake_options &options, const party &responder,
              stage first);
    [[nodiscard]] std::size_t message_bytes() const;
    void take_hello();
    void take_answer();
    void take_proof();
    void send_hello();
    void send_answer(state verdict);
    void send_body(const char *label, std::span<const unsigned char, body_bytes> text);
    [[nodiscard]] bool mix_ephemeral_keys();
    void finish();
    void fail(state why);

    handshake_options options_;
    party peer_;             ///< of an initiator: whom it means; of a responder: after the hello
    party_range expected_{}; ///< of a responder
    key_chain chain_;
    stage stage_;
    state state_ = state::running;
    bool is_initiator_;
    connection_key own_private_;
    std::array<unsigned char, key_bytes> own_public_{};
    std::array<unsigned char, key_bytes> peer_public_{};
    cipher cipher_ = cipher::chacha20_poly1305;
    std::uint32_t peer_version_ = 0;
    message in_{};
    std::size_t received_ = 0;
    message out_{};
    std::size_t out_bytes_ = 0;
    std::size_t sent_ = 0;
};

} // namespace diomp::secure
