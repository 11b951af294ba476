// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A session of a processor, and a client that says to it what no plugin would.
#include "offload/remote/client_side.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

namespace diomp::offload::service {
namespace {

using namespace diomp_test;
using testing::HasSubstr;

void run_session(const std::function<void(client_side &)> &body, int expected = 0) {
    run_sessions({}, body, expected);
}

TEST(session, puts_gets_and_copies_happen_in_order) {
    run_session([](client_side &side) {
        packet_writer batch;
        side.put(batch, side.memory, "abcdef");
        side.get(batch, side.memory + 1, 2);
        side.put(batch, side.memory + 2, "X");
        side.copy(batch, 1, side.memory + memory_bytes - 6, side.memory, 6);
        side.copy(batch, 1, side.memory + 1, side.memory, 5); // they overlap
        side.get(batch, side.memory, 6);
        side.get(batch, side.memory + memory_bytes - 6, 6);
        auto const got = side.ask(1, 1, std::move(batch));
        EXPECT_FALSE(got.failed);
        EXPECT_EQ(got.rest, "bc"
                            "aabXde"
                            "abXdef");
    });
}

TEST(session, a_call_without_a_runtime_is_an_error) {
    run_session([](client_side &side) {
        packet_writer batch;
        append_operation(batch, remote::operation::call_part);
        batch.text("a part");
        append_operation(batch, remote::operation::call);
        auto const got = side.ask(std::move(batch));
        EXPECT_TRUE(got.failed);
        EXPECT_THAT(got.rest, HasSubstr("makes no calls"));
        side.expect_service();
    });
}

TEST(session, addresses_outside_the_device_are_errors) {
    run_session([](client_side &side) {
        int mine = 0;
        std::uint64_t const end = side.memory + memory_bytes;
        std::uint64_t number = 1;
        for (std::uint64_t const address :
             {std::uint64_t{0}, std::uint64_t{16}, end - 3, end, end + 4096, side.memory - 1,
              ~std::uint64_t{0}, ~std::uint64_t{0} - 3, reinterpret_cast<std::uint64_t>(&mine),
              side.ranks->memory_of(world_rank(0))}) {
            packet_writer puts;
            side.put(puts, address, "four");
            packet_writer gets;
            side.get(gets, address, 4);
            packet_writer copies_from;
            side.copy(copies_from, 1, side.memory, address, 4);
            packet_writer copies_to;
            side.copy(copies_to, 1, address, side.memory, 4);
            for (packet_writer *each : {&puts, &gets, &copies_from, &copies_to}) {
                auto const got = side.ask(1, number++, std::move(*each));
                EXPECT_TRUE(got.failed) << std::hex << address;
                EXPECT_THAT(got.rest, HasSubstr("not memory of the device"));
            }
        }
        packet_writer huge;
        side.get(huge, side.memory, ~std::uint64_t{0});
        EXPECT_TRUE(side.ask(1, number++, std::move(huge)).failed);
        side.expect_service();
    });
}

TEST(session, copies_to_devices_that_are_not_there_are_errors) {
    run_session([](client_side &side) {
        std::uint64_t number = 1;
        for (std::uint32_t const rank : {0U, 2U, 77U, ~0U, 0x80000000U}) {
            packet_writer batch;
            side.copy(batch, rank, side.memory, side.memory, 8);
            auto const got = side.ask(1, number++, std::move(batch));
            EXPECT_TRUE(got.failed) << rank;
            EXPECT_THAT(got.rest, HasSubstr("does not exist"));
        }
        side.expect_service();
    });
}

TEST(session, kernels_that_are_not_there_are_errors) {
    run_session([](client_side &side) {
        for (std::uint64_t const address :
             {std::uint64_t{0}, side.memory, reinterpret_cast<std::uint64_t>(&std::abort)}) {
            remote::launch_arguments launch;
            launch.kernel = address;
            packet_writer batch;
            append(batch, launch);
            auto const got = side.ask(1, address, std::move(batch));
            EXPECT_TRUE(got.failed);
            EXPECT_THAT(got.rest, HasSubstr("no kernel at"));
        }
        side.expect_service();
    });
}

TEST(session, whole_pages_are_dropped_and_what_shares_one_stays) {
    run_session([](client_side &side) {
        constexpr std::uint64_t page = 4096;
        packet_writer batch;
        side.put(batch, side.memory, "first");
        side.put(batch, side.memory + page, "second");
        side.put(batch, side.memory + 2 * page, "third");
        side.release_pages(batch, side.memory + 1, 2 * page + 1);
        side.get(batch, side.memory, 5);
        side.get(batch, side.memory + page, 6);
        side.get(batch, side.memory + 2 * page, 5);
        auto const got = side.ask(1, 1, std::move(batch));
        EXPECT_FALSE(got.failed) << got.rest;
        EXPECT_EQ(got.rest, "first" + std::string(6, '\0') + "third");
    });
}

TEST(session, pages_outside_the_device_are_errors) {
    run_session([](client_side &side) {
        std::uint64_t number = 1;
        for (auto const &[address, nbytes] :
             {std::pair{std::uint64_t{0}, std::uint64_t{4096}},
              std::pair{side.memory, std::uint64_t{memory_bytes + 1}},
              std::pair{side.memory + memory_bytes, std::uint64_t{1}},
              std::pair{side.memory, ~std::uint64_t{0}}}) {
            packet_writer batch;
            side.release_pages(batch, address, nbytes);
            auto const got = side.ask(1, number++, std::move(batch));
            EXPECT_TRUE(got.failed) << std::hex << address;
            EXPECT_THAT(got.rest, HasSubstr("outside the device's memory"));
        }
        packet_writer torn;
        append_operation(torn, operation::release_pages);
        torn.number(~std::uint32_t{0});
        side.send(1, number++, torn.take());
        side.expect_service();
    });
}

TEST(session, nothing_follows_an_error_up_to_its_reply) {
    run_session([](client_side &side) {
        packet_writer batch;
        side.put(batch, side.memory, "before");
        side.put(batch, 16, "wrong");
        side.put(batch, side.memory, "after!");
        side.get(batch, side.memory, 6);
        EXPECT_TRUE(side.ask(1, 1, std::move(batch)).failed);
        packet_writer next;
        side.get(next, side.memory, 6);
        auto const got = side.ask(1, 2, std::move(next));
        EXPECT_FALSE(got.failed);
        EXPECT_EQ(got.rest, "before");
    });
}

TEST(session, more_bytes_than_a_reply_holds_are_an_error) {
    run_session([](client_side &side) {
        packet_writer batch;
        for (int i = 0; i < 20; ++i) {
            side.get(batch, side.memory, 60000);
        }
        auto const got = side.ask(1, 1, std::move(batch));
        EXPECT_TRUE(got.failed);
        EXPECT_THAT(got.rest, HasSubstr("than a reply can have"));
        side.expect_service();
    });
}

TEST(session, a_queue_waits_for_a_batch_of_another) {
    run_session([](client_side &side) {
        side.send(3, 1, ""); // so that it is known
        packet_writer late;
        side.wait(late, 2, 1); // not even known
        side.wait(late, 3, 2);
        side.get(late, side.memory, 4);
        append_operation(late, operation::finish);
        side.send(1, 1, late.take());
        side.expect_service(); // others go on
        EXPECT_FALSE(side.has_answer(1, 1));
        packet_writer first;
        side.put(first, side.memory, "2   ");
        side.send(2, 1, first.take());
        side.expect_service();
        EXPECT_FALSE(side.has_answer(1, 1));
        packet_writer second;
        side.put(second, side.memory + 1, "3");
        side.send(3, 2, second.take());
        EXPECT_EQ(side.wait_for(1, 1).rest, "23  ");
        packet_writer again; // has happened
        side.wait(again, 2, 1);
        EXPECT_FALSE(side.ask(1, 2, std::move(again)).failed);
    });
}

TEST(session, many_queues_that_wait_take_no_threads) {
    run_session([](client_side &side) {
        constexpr std::uint64_t count = 300;
        for (std::uint64_t queue = 1; queue <= count; ++queue) {
            packet_writer batch;
            side.wait(batch, queue - 1, 1);
            append_operation(batch, operation::finish);
            side.send(queue, 1, batch.take());
        }
        side.expect_service();
        side.send(0, 1, "");
        for (std::uint64_t queue = 1; queue <= count; ++queue) {
            EXPECT_FALSE(side.wait_for(queue, 1).failed);
        }
    });
}

TEST(session, cut_batches_are_errors_and_harm_nobody_else) {
    run_session([](client_side &side) {
        packet_writer whole;
        side.put(whole, side.memory, "put");
        side.get(whole, side.memory, 3);
        side.copy(whole, 1, side.memory + 8, side.memory, 3);
        remote::launch_arguments launch;
        launch.arguments = "12345678";
        append(whole, launch);
        std::string const bytes = whole.take();
        for (std::size_t size = 0; size < bytes.size(); ++size) {
            side.send(size, 1, bytes.substr(0, size));
        }
        side.send(5000, 1, "\x2a"); // no operation
        side.expect_service();
    });
}

TEST(session, changed_batches_do_not_end_it) {
    run_session([](client_side &side) {
        packet_writer valid;
        side.put(valid, side.memory, "put these bytes");
        side.get(valid, side.memory, 30);
        side.copy(valid, 1, side.memory + 64, side.memory, 30);
        side.wait(valid, 1, 1);
        remote::launch_arguments launch;
        launch.arguments = "12345678";
        append(valid, launch);
        append_operation(valid, operation::finish);
        std::string const bytes = valid.take();
        std::mt19937 random(2);
        for (std::uint64_t round = 1; round <= 5000; ++round) {
            std::string changed = bytes;
            for (std::uint_fast32_t change = random() % 5 + 1; change > 0; --change) {
                changed[random() % changed.size()] = static_cast<char>(random());
            }
            changed.resize(changed.size() - random() % 10);
            side.send(random() % 50, round, changed);
            if (round % 100 == 0) {
                side.expect_service();
            }
        }
    });
}

// ---- Control frames

TEST(session, an_image_is_asked_for_once_and_must_be_the_one_announced) {
    run_session([](client_side &side) {
        std::string const image = "no library at all";
        std::string const load = encode(remote::load_frame{remote::identify(image), {{"x", 1}}});
        std::string const wanted = packet_writer(frame::wanted).take();
        auto const failure_of = [](const std::string &packet) {
            packet_reader reader(packet);
            EXPECT_EQ(reader.type<frame>(), frame::failed);
            return std::string(reader.text());
        };
        packet_writer other(frame::image);
        other.bytes("another one");
        EXPECT_EQ(side.answer_to(load), wanted);
        EXPECT_THAT(failure_of(side.answer_to(other.take())), HasSubstr("announced"));
        EXPECT_EQ(side.answer_to(load), wanted);
        EXPECT_THAT(failure_of(side.answer_to(packet_writer(frame::load).take())),
                    HasSubstr("an image was expected"));
        packet_writer right(frame::image);
        right.bytes(image);
        EXPECT_EQ(side.answer_to(load), wanted);
        EXPECT_THAT(failure_of(side.answer_to(right.take())), HasSubstr("cannot be loaded"));
        EXPECT_THAT(failure_of(side.answer_to(load)), HasSubstr("cannot be loaded")); // is known
        EXPECT_THAT(failure_of(side.answer_to(packet_writer(frame::load).take())),
                    HasSubstr("malformed"));
        side.expect_service();
    });
}

TEST(session, stop_is_answered_when_all_is_sent) {
    run_session([](client_side &side) {
        side.expect_service();
        EXPECT_EQ(side.answer_to(packet_writer(frame::stop).take()),
                  encode(std::vector<remote::kernel_time>()));
    });
}

TEST(session, frames_that_no_client_sends_end_it) {
    run_session(
        [](client_side &side) {
            EXPECT_EQ(side.answer_to(packet_writer(frame::accepted).take()), "");
        },
        1);
}

} // namespace
} // namespace diomp::offload::service
