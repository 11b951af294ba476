// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The entry point of libFuzzer, which fuzz_main.cpp calls too. An input's first byte chooses what
// it is fed to; the rest is what the peer sends, or is mixed into what a genuine peer would send.
// Nothing that differs from the genuine bytes may get through.
#include "base/secure/frame_codec.h"
#include "base/secure/pairing.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>

namespace {

using namespace diomp::secure;
using namespace diomp::secure::testing;
using input = std::span<const unsigned char>;

void require(bool condition, const char *what) {
    if (!condition) {
        std::fprintf(stderr, "fuzz: %s\n", what);
        std::abort();
    }
}

/// A handshake as it was before each of its messages, and the messages.
struct recording {
    secret key = secret::random();
    handshake initiator = initiator_of(key);
    handshake fresh_responder = responder_of(key);
    handshake responder = fresh_responder; ///< waits for the proof
    transcript seen;

    recording() {
        handshake continued = initiator;
        seen.hello = take_output(continued);
        initiator.discard_output(seen.hello.size());
        responder.receive(seen.hello);
        seen.answer = take_output(responder);
        continued.receive(seen.answer);
        seen.proof = take_output(continued);
    }
};

const recording &recorded() {
    static recording const made;
    return made;
}

/// Feeds bytes in steps of a size that depends on them.
void feed(handshake &into, input bytes) {
    while (!bytes.empty()) {
        std::size_t const step = std::min<std::size_t>(1 + bytes.front() % 61, bytes.size());
        std::size_t const taken = into.receive(bytes.first(step));
        if (taken < step) {
            require(into.condition() != handshake::state::running, "bytes were left in the middle");
            return;
        }
        bytes = bytes.subspan(step);
    }
}

/// The genuine message with the input's bytes mixed in: pairs of position and difference.
bytes mix(const bytes &genuine, input with) {
    bytes mixed = genuine;
    while (with.size() >= 2) {
        unsigned char &target = mixed[with[0] % mixed.size()];
        target = static_cast<unsigned char>(target ^ with[1]);
        with = with.subspan(2);
    }
    return mixed;
}

void check_handshake(const handshake &before, const bytes &genuine, input with, bool is_mixed,
                     handshake::state right) {
    handshake end = before;
    bytes const sent = is_mixed ? mix(genuine, with) : bytes(with.begin(), with.end());
    feed(end, sent);
    bool const is_genuine =
        sent.size() >= genuine.size() && std::equal(genuine.begin(), genuine.end(), sent.begin());
    bool const is_complete = sent.size() >= genuine.size();
    if (!is_complete) {
        require(end.condition() == handshake::state::running, "it ended before the message did");
    } else if (is_genuine) {
        require(end.condition() == right || sent.size() > genuine.size(), "a genuine one failed");
    } else {
        require(end.condition() == handshake::state::unauthenticated,
                "a forged message got through");
        require(end.output().empty(), "a forged message was answered");
    }
}

std::optional<frame_cipher> make_cipher(bool is_sealed) {
    return is_sealed ? std::optional<frame_cipher>(std::in_place, cipher::chacha20_poly1305,
                                                   connection_key())
                     : std::nullopt;
}

constexpr std::size_t most_frame_bytes = 300;

/// Returns the number of frames that came.
int decode(input stream, bool is_sealed) {
    frame_decoder decoder(make_cipher(is_sealed), most_frame_bytes);
    int count = 0;
    while (!stream.empty() && !decoder.is_broken()) {
        auto const space = decoder.space();
        std::size_t const step =
            std::min({space.size(), stream.size(), std::size_t{1} + stream.front()});
        std::memcpy(space.data(), stream.data(), step);
        decoder.commit(step);
        stream = stream.subspan(step);
        while (auto const frame = decoder.next()) {
            require(!frame->empty() && frame->size() <= most_frame_bytes, "a frame's size");
            ++count;
        }
    }
    return count;
}

/// Three sealed frames with the input's bytes mixed in: those before the first change come.
void check_sealed_frames(input with) {
    static std::string const genuine = [] {
        frame_encoder encoder(make_cipher(true));
        std::string stream;
        for (std::size_t const nbytes : std::initializer_list<std::size_t>{1, 100, 30}) {
            encoder.append(stream, std::string(nbytes, 'f'));
        }
        return stream;
    }();
    bytes const mixed = mix(bytes(genuine.begin(), genuine.end()), with);
    auto const changed = std::ranges::mismatch(
        mixed, genuine, [](unsigned char a, char b) { return a == static_cast<unsigned char>(b); });
    auto const position = static_cast<std::size_t>(changed.in1 - mixed.begin());
    constexpr std::size_t overhead = frame_header_bytes + frame_cipher::tag_bytes;
    int const right = position < overhead + 1         ? 0
                      : position < 2 * overhead + 101 ? 1
                      : position < mixed.size()       ? 2
                                                      : 3;
    require(decode(mixed, true) == right, "changed frames got through, or genuine ones did not");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char *data, std::size_t size) {
    if (size == 0) {
        return 0;
    }
    recording const &known = recorded();
    input const rest{data + 1, size - 1};
    using state = handshake::state;
    switch (data[0] % 8) {
    case 0:
    case 1:
        check_handshake(known.fresh_responder, known.seen.hello, rest, data[0] % 8 == 1,
                        state::running);
        break;
    case 2:
    case 3:
        check_handshake(known.responder, known.seen.proof, rest, data[0] % 8 == 3, state::done);
        break;
    case 4:
    case 5:
        check_handshake(known.initiator, known.seen.answer, rest, data[0] % 8 == 5, state::done);
        break;
    case 6:
        decode(rest, false);
        require(decode(rest, true) == 0, "a sealed frame was made without the key");
        break;
    default:
        check_sealed_frames(rest);
        break;
    }
    return 0;
}
