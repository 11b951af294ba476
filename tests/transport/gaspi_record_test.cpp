// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Records of the conduit over GPI-2 arrive in any pieces and in any order: none is taken before all
// of it is there. Needs no GPI-2.
#include "transport/gaspi/ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

namespace {

namespace gaspi = diomp::transport::gaspi;
using gaspi::record;

constexpr std::size_t ring_bytes = 4096;

struct ring {
    alignas(64) std::array<std::byte, ring_bytes> bytes{};
};

std::vector<std::byte> noise(std::size_t nbytes, unsigned seed) {
    std::mt19937 numbers(seed);
    std::vector<std::byte> made(nbytes);
    std::ranges::generate(made, [&] { return static_cast<std::byte>(numbers()); });
    return made;
}

record head_for(std::uint32_t position, std::size_t nbytes) {
    return {.stamp = gaspi::to_notification(position),
            .nbytes = static_cast<std::uint32_t>(nbytes),
            .handler = 7};
}

TEST(gaspi_record, nothing_is_there_at_first) {
    ring here;
    record head{};
    EXPECT_FALSE(gaspi::read_record(here.bytes.data(), 0, ring_bytes, head));
}

TEST(gaspi_record, is_there_when_its_last_byte_is_whichever_that_is) {
    for (std::size_t const nbytes : {0U, 1U, 7U, 8U, 47U, 48U, 49U, 1000U}) {
        ring sent;
        auto const payload = noise(nbytes, 1);
        gaspi::write_record(sent.bytes.data(), head_for(3, nbytes), payload);
        std::size_t const size = sizeof(record) + nbytes;
        // What lay there before differs in every byte.
        ring before;
        std::ranges::transform(sent.bytes, before.bytes.begin(), [](auto each) { return ~each; });
        for (std::size_t missing = 0; missing < size; ++missing) {
            ring here = sent;
            here.bytes[missing] = before.bytes[missing];
            record head{};
            EXPECT_FALSE(gaspi::read_record(here.bytes.data(), 3, ring_bytes, head))
                << "byte " << missing << " of " << size;
        }
        record head{};
        ring here = sent;
        ASSERT_TRUE(gaspi::read_record(here.bytes.data(), 3, ring_bytes, head));
        EXPECT_EQ(head.nbytes, nbytes);
        EXPECT_EQ(head.handler, 7);
        EXPECT_EQ(head.is_filler, 0);
        EXPECT_TRUE(
            std::ranges::equal(payload, std::span(here.bytes).subspan(sizeof(record), nbytes)));
    }
}

TEST(gaspi_record, half_of_it_is_not_enough_in_any_order) {
    constexpr std::size_t nbytes = 200;
    ring sent;
    gaspi::write_record(sent.bytes.data(), head_for(5, nbytes), noise(nbytes, 2));
    std::vector<std::size_t> order(sizeof(record) + nbytes);
    for (std::size_t i = 0; i < order.size(); ++i) {
        order[i] = i;
    }
    std::mt19937 numbers(3);
    for (int round = 0; round < 200; ++round) {
        std::ranges::shuffle(order, numbers);
        ring here;
        std::ranges::copy(noise(ring_bytes, static_cast<unsigned>(round)), here.bytes.begin());
        record head{};
        std::size_t arrived = 0;
        for (std::size_t const at : order) {
            bool const is_whole = std::equal(here.bytes.begin(), here.bytes.begin() + order.size(),
                                             sent.bytes.begin());
            EXPECT_EQ(gaspi::read_record(here.bytes.data(), 5, ring_bytes, head), is_whole)
                << arrived << " bytes";
            here.bytes[at] = sent.bytes[at];
            ++arrived;
        }
        EXPECT_TRUE(gaspi::read_record(here.bytes.data(), 5, ring_bytes, head));
    }
}

TEST(gaspi_record, one_of_the_last_lap_is_not_taken_again) {
    ring here;
    gaspi::write_record(here.bytes.data(), head_for(64, 8), noise(8, 4));
    record head{};
    EXPECT_TRUE(gaspi::read_record(here.bytes.data(), 64, ring_bytes, head));
    EXPECT_FALSE(gaspi::read_record(here.bytes.data(), 128, ring_bytes, head));
    EXPECT_FALSE(gaspi::read_record(here.bytes.data(), 0, ring_bytes, head));
}

TEST(gaspi_record, a_length_beyond_the_ring_is_not_believed) {
    ring here;
    record wrong = head_for(9, 1U << 30);
    std::memcpy(here.bytes.data(), &wrong, sizeof(wrong));
    record head{};
    EXPECT_FALSE(gaspi::read_record(here.bytes.data(), 9, ring_bytes, head));
    EXPECT_FALSE(gaspi::read_record(here.bytes.data(), 9, gaspi::message_unit, head));
}

TEST(gaspi_record, positions_go_around) {
    EXPECT_EQ(gaspi::to_position(gaspi::to_notification(gaspi::position_mask)),
              gaspi::position_mask);
    EXPECT_NE(gaspi::to_notification(0), 0U);
    EXPECT_EQ(gaspi::distance(gaspi::position_mask, 1), 2U);
    EXPECT_EQ(gaspi::units_for(0), 1U);
    EXPECT_EQ(gaspi::units_for(gaspi::message_unit - sizeof(record)), 1U);
    EXPECT_EQ(gaspi::units_for(gaspi::message_unit), 2U);
}

/// Posts all unsent records of the mirror to the receiver's ring.
void transmit(gaspi::send_ring &from, ring &to) {
    while (!from.is_all_transmitted()) {
        auto const next = from.next_unsent();
        ASSERT_GT(next.nbytes, 0U);
        std::memcpy(to.bytes.data() + next.offset, from.at(next), next.nbytes);
        from.note_transmitted(next);
    }
}

TEST(gaspi_ring, messages_of_all_sizes_pass_over_many_laps) {
    constexpr std::uint32_t num_units = ring_bytes / gaspi::message_unit;
    ring mirror;
    ring arrived;
    gaspi::send_ring sender(mirror.bytes.data(), num_units);
    gaspi::receive_ring receiver(arrived.bytes.data(), num_units);
    EXPECT_FALSE(sender.is_used());
    std::mt19937 numbers(5);
    for (unsigned i = 0; i < 2000; ++i) {
        auto const payload = noise(numbers() % 900, i);
        ASSERT_TRUE(sender.has_space_for(payload.size()));
        sender.append(static_cast<diomp::transport::handler_id>(i), payload);
        transmit(sender, arrived);
        record head{};
        ASSERT_TRUE(receiver.find(head));
        if (head.is_filler != 0) {
            receiver.consume(head);
            ASSERT_TRUE(receiver.find(head));
        }
        EXPECT_EQ(head.handler, i);
        EXPECT_TRUE(std::ranges::equal(payload, receiver.payload_of(head)));
        receiver.consume(head);
        EXPECT_FALSE(receiver.find(head));
        if (receiver.is_credit_due()) {
            sender.acknowledge(receiver.take_credit());
        }
    }
    EXPECT_TRUE(sender.is_used());
}

TEST(gaspi_ring, a_full_ring_takes_messages_again_after_credit) {
    constexpr std::uint32_t num_units = ring_bytes / gaspi::message_unit;
    ring mirror;
    gaspi::send_ring sender(mirror.bytes.data(), num_units);
    std::uint32_t num_sent = 0;
    for (; sender.has_space_for(0); ++num_sent) {
        EXPECT_EQ(sender.is_half_full_with(0), num_sent >= num_units / 2);
        sender.append(1, {});
    }
    EXPECT_EQ(num_sent, num_units);
    EXPECT_EQ(sender.num_unacknowledged(), num_units);
    sender.acknowledge(1);
    EXPECT_TRUE(sender.has_space_for(0));
    EXPECT_FALSE(sender.has_space_for(gaspi::message_unit));
}

} // namespace
