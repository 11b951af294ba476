// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Processor time of a handshake (base/secure/handshake.h), both sides together, without sockets:
// microseconds, the median of 21 series. "sealed" agrees on keys for the bytes that follow.
#include "base/secure/handshake.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace {

using namespace diomp::secure;

void pass(handshake &from, handshake &to) {
    auto const bytes = from.output();
    std::size_t const nbytes = bytes.size();
    to.receive(bytes);
    from.discard_output(nbytes);
}

void connect(const secret &key, protection wanted) {
    party const first{role::rank, 0};
    party const second{role::rank, 1};
    handshake initiator = handshake::initiate(key, {purpose::transfers, first, 1, wanted}, second);
    handshake responder =
        handshake::respond(key, {purpose::transfers, second, 1, wanted}, {role::rank, 0, 1});
    pass(initiator, responder);
    pass(responder, initiator);
    pass(initiator, responder);
    if (responder.condition() != handshake::state::done) {
        std::fprintf(stderr, "%s\n", responder.describe_failure().c_str());
        std::exit(1);
    }
}

double median_us(const secret &key, protection wanted) {
    constexpr int num_handshakes = 200;
    std::array<double, 21> series{};
    for (double &each : series) {
        auto const begin = std::chrono::steady_clock::now();
        for (int i = 0; i < num_handshakes; ++i) {
            connect(key, wanted);
        }
        std::chrono::duration<double, std::micro> const taken =
            std::chrono::steady_clock::now() - begin;
        each = taken.count() / num_handshakes;
    }
    std::ranges::nth_element(series, series.begin() + series.size() / 2);
    return series[series.size() / 2];
}

} // namespace

int main() {
    secret const key = secret::random();
    std::printf("plain  %.1f us\n", median_us(key, protection::plain));
    std::printf("sealed %.1f us\n", median_us(key, protection::sealed));
    return 0;
}
