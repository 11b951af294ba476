// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Two ends of a handshake in one process, for tests.
#pragma once

#include "base/secure/handshake.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace diomp::secure::testing {

using bytes = std::vector<unsigned char>;

/// What an end has to send now.
inline bytes take_output(handshake &from) {
    auto const output = from.output();
    bytes taken(output.begin(), output.end());
    from.discard_output(taken.size());
    return taken;
}

/// The messages of a handshake, in order.
struct transcript {
    bytes hello;
    bytes answer;
    bytes proof;
};

/// Runs a handshake as far as it goes.
inline transcript run(handshake &initiator, handshake &responder) {
    transcript seen;
    seen.hello = take_output(initiator);
    responder.receive(seen.hello);
    seen.answer = take_output(responder);
    initiator.receive(seen.answer);
    seen.proof = take_output(initiator);
    responder.receive(seen.proof);
    return seen;
}

inline constexpr party rank_2{role::rank, 2};
inline constexpr party rank_5{role::rank, 5};
inline constexpr party_range eight_ranks{role::rank, 0, 8};

inline handshake_options options_of(const party &self, purpose why = purpose::transfers) {
    return {.why = why, .self = self, .version = 7};
}
inline handshake initiator_of(const secret &key) {
    return handshake::initiate(key, options_of(rank_2), rank_5);
}
inline handshake responder_of(const secret &key) {
    return handshake::respond(key, options_of(rank_5), eight_ranks);
}

inline std::string seal_text(frame_cipher &with, const std::string &text) {
    std::string sealed(text.size() + frame_cipher::tag_bytes, '\0');
    with.seal({}, {reinterpret_cast<const unsigned char *>(text.data()), text.size()},
              reinterpret_cast<unsigned char *>(sealed.data()));
    return sealed;
}
inline std::optional<std::string> open_text(frame_cipher &with, const std::string &sealed) {
    std::string text(sealed.size() - frame_cipher::tag_bytes, '\0');
    bool const is_genuine =
        with.open({}, {reinterpret_cast<const unsigned char *>(sealed.data()), sealed.size()},
                  reinterpret_cast<unsigned char *>(text.data()));
    return is_genuine ? std::optional(text) : std::nullopt;
}

} // namespace diomp::secure::testing
