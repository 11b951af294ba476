// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Contract of a put with a message behind it: whoever handles the message sees the bytes. Conduits
// that have no such way for a size say so, and then nothing has happened.
#include "support/patterns.h"
#include "transport/world.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <thread>

namespace {

using namespace diomp_test;

constexpr std::size_t part_bytes = std::size_t{38} << 20;
constexpr std::size_t sizes[] = {0,      1,      4096,   32768,   65535,         65536,   65537,
                                 100001, 262144, 300000, 1 << 20, (3 << 20) + 5, 35 << 20};

/// Where rank `writer` writes at `owner`.
std::byte *part(int owner, int writer) {
    return ours().memory_of(owner) + static_cast<std::size_t>(writer) * part_bytes;
}

struct announcement {
    std::uint64_t offset;
    std::uint64_t nbytes;
    int number;
};

int next() { return (ours().rank() + 1) % ours().size(); }
int previous() { return (ours().rank() + ours().size() - 1) % ours().size(); }

/// The conduits of which it is known; the others may have such a way or not.
bool must_go(const char *conduit) {
    const char *const name = std::getenv("DIOMP_CONDUIT");
    return name != nullptr && std::string(name) == conduit;
}

/// Counts what arrives, and whether it was whole when its message was handled.
class inbox {
public:
    inbox() {
        ours().on_message([this](const message &each) { take(each); });
    }
    [[nodiscard]] int received() const { return received_; }
    [[nodiscard]] int wrong() const { return wrong_; }

private:
    void take(const message &each) {
        announcement what{};
        std::memcpy(&what, each.payload.data(), std::min(sizeof(what), each.payload.size()));
        auto const expected = pattern(each.source.value(), ours().rank(), what.number, what.nbytes);
        const std::byte *const at = part(ours().rank(), each.source.value()) + what.offset;
        bool const is_whole =
            expected.empty() || std::memcmp(at, expected.data(), expected.size()) == 0;
        wrong_ += is_whole && each.handler == 7 ? 0 : 1;
        ++received_;
    }

    std::atomic<int> received_{0};
    std::atomic<int> wrong_{0};
};

/// Whether it went this way.
bool announce(int peer, const announcement &what, const std::vector<std::uint8_t> &bytes,
              completion &source_free) {
    auto *const longs = ours().conduit().am_long(world_rank{peer});
    if (longs == nullptr) {
        return false;
    }
    auto const sent = longs->put_with_message(
        world_rank{peer}, reinterpret_cast<std::uintptr_t>(part(peer, ours().rank()) + what.offset),
        std::as_bytes(std::span(bytes)), 7, std::as_bytes(std::span(&what, 1)), source_free);
    if (!sent) {
        ours().abort(sent.failure().message());
    }
    return sent.value();
}

/// Tells the next rank how many to expect, which waits for them.
void expect_all(const inbox &arriving, int sent_from_here) {
    auto *const told = reinterpret_cast<std::uint64_t *>(
        ours().memory_of(ours().rank()) + world::memory_bytes - sizeof(std::uint64_t));
    ours().meet();
    auto const count = static_cast<std::uint64_t>(sent_from_here);
    ours().put(next(), ours().memory_of(next()) + world::memory_bytes - sizeof(std::uint64_t),
               &count, sizeof(count));
    ours().flush(next());
    ours().meet();
    ours().wait_until([&] { return arriving.received() == static_cast<int>(*told); },
                      "messages behind puts");
    EXPECT_EQ(arriving.wrong(), 0);
    ours().meet();
}

TEST(put_with_message, the_handler_sees_the_bytes_of_every_size) {
    inbox arriving;
    ours().meet();
    int sent = 0;
    for (int round = 0; round < 3; ++round) {
        std::memset(part(ours().rank(), previous()), 0x55, part_bytes);
        ours().meet();
        int number = 0;
        for (std::size_t const nbytes : sizes) {
            auto const bytes = pattern(ours().rank(), next(), number, nbytes);
            completion source_free;
            bool const went = announce(next(), {static_cast<std::uint64_t>(round), nbytes, number},
                                       bytes, source_free);
            EXPECT_TRUE(went || source_free.is_done());
            ours().wait(source_free);
            sent += went ? 1 : 0;
            // Behind each other they would overwrite what the handler has not seen yet.
            expect_all(arriving, sent);
            ++number;
        }
    }
    if (must_go("gaspi")) {
        EXPECT_EQ(sent, 3 * std::ranges::count_if(sizes, [](auto size) { return size >= 65536; }));
    }
    if (must_go("tcp")) {
        EXPECT_EQ(sent, 3 * std::ssize(sizes));
    }
}

TEST(put_with_message, a_storm_in_both_directions_among_puts_and_messages) {
    constexpr int num_rounds = 150;
    constexpr std::size_t cell = 200000;
    inbox arriving;
    ours().meet();
    std::vector<std::vector<std::uint8_t>> kept;
    kept.reserve(num_rounds);
    completion source_free;
    std::atomic<bool> sending{true};
    // Small puts from another thread meanwhile.
    std::thread other([&] {
        std::uint64_t word = 0;
        while (sending) {
            ++word;
            ours().put(next(), part(next(), ours().rank()) + num_rounds * cell, &word,
                       sizeof(word));
            ours().flush(next());
        }
    });
    int went = 0;
    for (int i = 0; i < num_rounds; ++i) {
        std::size_t const nbytes = 65536 + static_cast<std::size_t>(i * 7919) % 100000;
        kept.push_back(pattern(ours().rank(), next(), i, nbytes));
        announcement const what{static_cast<std::uint64_t>(i) * cell, nbytes, i};
        went += announce(next(), what, kept.back(), source_free) ? 1 : 0;
        // An empty piece is announced by an ordinary message, in the same ring.
        announcement const nothing{0, 0, i};
        ours().send(next(), 7, std::as_bytes(std::span(&nothing, 1)));
    }
    ours().wait(source_free);
    sending = false;
    other.join();
    expect_all(arriving, went + num_rounds);
    EXPECT_TRUE(went > 0 || !(must_go("gaspi") || must_go("tcp")));
}

} // namespace
