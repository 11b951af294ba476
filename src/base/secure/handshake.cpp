// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/secure/handshake.h"

#include "base/panic.h"

#include <fmt/format.h>

#include <algorithm>

namespace diomp::secure {
namespace {

// The labels must change with the layout of the messages.
constexpr const char *hello_label = "hello";
constexpr const char *response_label = "answer";
constexpr const char *proof_label = "proof";
constexpr const char *from_initiator_label = "from initiator";
constexpr const char *from_responder_label = "from responder";

// Bodies, in little-endian order:
//   hello     0: ephemeral key  32: role  33: protection  34: ciphers  36: number  40: version
//   response  0: ephemeral key or zeros  32: decision  33: protection  34: cipher  40: version
// All other bytes are 0 and ignored.
constexpr std::size_t first_field = key_bytes; ///< role, or decision
constexpr std::size_t protection_field = 33;
constexpr std::size_t cipher_field = 34;
constexpr std::size_t number_field = 36;
constexpr std::size_t version_field = 40;

using body = erased_array<handshake::body_bytes>;

void write_number(unsigned char *to, std::uint32_t value) {
    for (int i = 0; i < 4; ++i) {
        to[i] = static_cast<unsigned char>(value >> (8 * i));
    }
}

std::uint32_t read_number(const unsigned char *from) {
    std::uint32_t value = 0;
    for (unsigned i = 0; i < 4; ++i) {
        value |= static_cast<std::uint32_t>(from[i]) << (8 * i);
    }
    return value;
}

std::string context_of(purpose why, const party &responder) {
    std::string text = "DiOMP handshake 2";
    text += static_cast<char>(why);
    text += static_cast<char>(responder.what);
    unsigned char number[4];
    write_number(number, responder.number);
    text.append(reinterpret_cast<const char *>(number), sizeof(number));
    return text;
}

protection stronger(protection ours, unsigned char theirs) {
    bool const is_sealed =
        ours == protection::sealed || theirs == static_cast<unsigned char>(protection::sealed);
    return is_sealed ? protection::sealed : protection::plain;
}

} // namespace

std::string to_string(const party &who) {
    switch (who.what) {
    case role::rank:
        return fmt::format("rank {}", who.number);
    case role::head:
        return "the head";
    case role::agent:
        return fmt::format("agent {}", who.number);
    case role::client:
        return "a client";
    case role::service:
        return "a device service";
    case role::session:
        return fmt::format("session {}", who.number);
    case role::launcher:
        return "the launcher";
    }
    return "an unknown party";
}

handshake::handshake(const secret &key, const handshake_options &options, const party &responder,
                     stage first)
    : options_(options), chain_(key, context_of(options.why, responder)), stage_(first),
      is_initiator_(first == stage::response) {}

handshake handshake::initiate(const secret &key, const handshake_options &options,
                              const party &peer) {
    handshake made(key, options, peer, stage::response);
    made.peer_ = peer;
    made.send_hello();
    return made;
}

handshake handshake::respond(const secret &key, const handshake_options &options,
                             const party_range &peers) {
    handshake made(key, options, options.self, stage::hello);
    made.expected_ = peers;
    return made;
}

std::size_t handshake::message_bytes() const {
    switch (stage_) {
    case stage::hello:
        return hello_bytes;
    case stage::response:
        return response_bytes;
    case stage::proof:
        return proof_bytes;
    case stage::none:
        return 0;
    }
    return 0;
}

std::size_t handshake::num_missing() const { return message_bytes() - in_.size(); }

std::size_t handshake::receive(std::span<const unsigned char> bytes) {
    std::size_t num_taken = 0;
    while (stage_ != stage::none && num_taken < bytes.size()) {
        num_taken += in_.append(bytes.subspan(num_taken), num_missing());
        if (num_missing() > 0) {
            break;
        }
        in_.restart();
        switch (stage_) {
        case stage::hello:
            receive_hello();
            break;
        case stage::response:
            receive_response();
            break;
        case stage::proof:
            receive_proof();
            break;
        case stage::none:
            break;
        }
    }
    return num_taken;
}

void handshake::fail(state why) {
    state_ = why;
    stage_ = stage::none;
}

void handshake::send_body(const char *label, std::span<const unsigned char, body_bytes> text) {
    std::span<unsigned char> const sealed = out_.start(hello_bytes);
    seal(chain_.derive(label), text, sealed);
    chain_.absorb(sealed);
}

void handshake::send_hello() {
    start_library();
    keys_.generate();
    body text;
    std::ranges::copy(keys_.own_public(), text.data());
    text.data()[first_field] = static_cast<unsigned char>(options_.self.what);
    text.data()[protection_field] = static_cast<unsigned char>(options_.wanted);
    text.data()[cipher_field] = available_ciphers();
    write_number(text.data() + number_field, options_.self.number);
    write_number(text.data() + version_field, options_.version);
    send_body(hello_label, std::span<const unsigned char, body_bytes>(text.data(), body_bytes));
}

void handshake::receive_hello() {
    body text;
    if (!open(chain_.derive(hello_label), in_.bytes(), {text.data(), body_bytes})) {
        return fail(state::unauthenticated);
    }
    chain_.absorb(in_.bytes());
    keys_.set_peer_public(text.data());
    peer_ = {static_cast<role>(text.data()[first_field]), read_number(text.data() + number_field)};
    peer_version_ = read_number(text.data() + version_field);
    options_.wanted = stronger(options_.wanted, text.data()[protection_field]);
    auto const common = choose_cipher(available_ciphers(), text.data()[cipher_field]);
    if (peer_version_ != options_.version || !common) {
        return send_response(state::wrong_version);
    }
    // A message from this party itself has been reflected.
    if (!expected_.contains(peer_) || peer_ == options_.self) {
        return send_response(state::wrong_peer);
    }
    cipher_ = *common;
    if (agrees_on_keys()) {
        keys_.generate();
    }
    send_response(state::running);
}

void handshake::send_response(state decision) {
    body text;
    std::ranges::copy(keys_.own_public(), text.data());
    text.data()[first_field] = static_cast<unsigned char>(decision);
    text.data()[protection_field] = static_cast<unsigned char>(options_.wanted);
    text.data()[cipher_field] = static_cast<unsigned char>(cipher_);
    write_number(text.data() + version_field, options_.version);
    send_body(response_label, std::span<const unsigned char, body_bytes>(text.data(), body_bytes));
    if (decision != state::running) {
        return fail(decision);
    }
    stage_ = stage::proof;
    if (agrees_on_keys() && !keys_.mix_into(chain_)) {
        out_.clear();
        fail(state::unauthenticated);
    }
}

void handshake::receive_response() {
    body text;
    if (!open(chain_.derive(response_label), in_.bytes(), {text.data(), body_bytes})) {
        return fail(state::unauthenticated);
    }
    chain_.absorb(in_.bytes());
    keys_.set_peer_public(text.data());
    peer_version_ = read_number(text.data() + version_field);
    auto const decision = static_cast<state>(text.data()[first_field]);
    if (decision == state::wrong_version || decision == state::wrong_peer) {
        return fail(decision);
    }
    auto const chosen = choose_cipher(
        available_ciphers(), static_cast<std::uint8_t>(1U << (text.data()[cipher_field] & 7U)));
    options_.wanted = stronger(options_.wanted, text.data()[protection_field]);
    bool const has_keys = !agrees_on_keys() || keys_.mix_into(chain_);
    if (decision != state::running || !chosen || !has_keys) {
        return fail(state::unauthenticated);
    }
    cipher_ = *chosen;
    std::span<unsigned char> const proof = out_.start(proof_bytes);
    seal(chain_.derive(proof_label), {}, proof);
    chain_.absorb(proof);
    finish();
}

void handshake::receive_proof() {
    std::span<const unsigned char> const proof = std::span(in_.bytes()).first(proof_bytes);
    if (!open(chain_.derive(proof_label), proof, {})) {
        return fail(state::unauthenticated);
    }
    chain_.absorb(proof);
    finish();
}

void handshake::finish() {
    state_ = state::done;
    stage_ = stage::none;
}

session_keys handshake::take_session_keys() {
    if (state_ != state::done) {
        panic("a handshake has no session before it is done");
    }
    frame_cipher from_initiator(cipher_, chain_.derive(from_initiator_label));
    frame_cipher from_responder(cipher_, chain_.derive(from_responder_label));
    if (is_initiator_) {
        return {peer_, options_.wanted, std::move(from_initiator), std::move(from_responder)};
    }
    return {peer_, options_.wanted, std::move(from_responder), std::move(from_initiator)};
}

std::string handshake::describe_failure() const {
    switch (state_) {
    case state::running:
        return "the handshake has not been completed";
    case state::done:
        break;
    case state::unauthenticated:
        return is_initiator_ ? fmt::format("the other end does not prove that it is {}: it has "
                                           "another secret, or is another program",
                                           to_string(peer_))
                             : "the other end does not prove that it knows the secret";
    case state::wrong_peer:
        return is_initiator_
                   ? fmt::format("{} does not expect a connection from {}", to_string(peer_),
                                 to_string(options_.self))
                   : fmt::format("{} connects, which is not expected here", to_string(peer_));
    case state::wrong_version:
        return fmt::format("{} speaks version {} of the protocol, this process version {}; both "
                           "need the same release of DiOMP",
                           to_string(peer_), peer_version_, options_.version);
    }
    return {};
}

} // namespace diomp::secure
