// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The CUDA backend on a real driver and device, one device being enough. Ends with status 77 where
// there is none. DIOMP_TEST_CUDA_LIBRARY names another driver: with the stand-in of fake_cuda.h the
// test itself is tested where there is no device.
//
// Prints lines "figure NAME BYTES VALUE UNIT", which scripts/gpu-check.sh gathers.
#include "device/real_fixture.h"
#include "device/stream_pool.h"
#include "device/two_processes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

namespace diomp::device {
namespace {

constexpr int skipped = 77; // ctest's SKIP_RETURN_CODE
using namespace real;       // NOLINT(google-build-using-namespace)

test::second_process *neighbour = nullptr;

std::string library() {
    const char *const path = std::getenv("DIOMP_TEST_CUDA_LIBRARY");
    return path == nullptr ? "" : path;
}

TEST(device_real_test, driver_describes_its_devices) {
    for (int number = 0; number < cuda->num_devices(); ++number) {
        auto const found = cuda->describe(device_id(number));
        ASSERT_TRUE(found.ok()) << found.failure().message();
        properties const &of = found.value();
        std::printf("device %d: %s, %s, NUMA node %d, %zu of %zu MiB free, %d multiprocessors, "
                    "memory %s, %s\n",
                    number, of.name.c_str(), of.pci_bus_id.c_str(), of.numa_node,
                    of.free_bytes / mebibyte, of.total_bytes / mebibyte, of.multiprocessors,
                    of.memory_grows ? "grows" : "does not grow",
                    of.memory_shares ? "shares" : "does not share");
        EXPECT_FALSE(of.name.empty());
        EXPECT_FALSE(of.pci_bus_id.empty());
        EXPECT_NE(of.uuid, decltype(of.uuid){});
        EXPECT_GT(of.multiprocessors, 0);
        EXPECT_GT(of.free_bytes, 0U);
        EXPECT_LE(of.free_bytes, of.total_bytes);
    }
    EXPECT_EQ(cuda->describe(device_id(cuda->num_devices())).failure().code(), OMPX_ERR_ARG);
}

TEST(device_real_test, reservation_grows_in_place_and_keeps_its_contents) {
    std::size_t const half = large() / 2;
    auto const kept = pattern(half / sizeof(std::uint64_t), 1);
    auto segment = reserve(2 * half, half);
    std::byte *const base = segment->base();
    expect_ok(copy_and_wait(*cuda, base, kept.data(), half));
    std::size_t const free_before = cuda->describe(zero).value().free_bytes;
    expect_ok(segment->commit(0, 2 * half));
    EXPECT_EQ(segment->base(), base);
    EXPECT_GE(segment->committed_bytes(), 2 * half);
    if (cuda->describe(zero).value().memory_grows) {
        EXPECT_LE(cuda->describe(zero).value().free_bytes, free_before - half);
    }
    words into(kept.size());
    expect_ok(copy_and_wait(*cuda, base + half, base, half)); // within the device
    expect_ok(copy_and_wait(*cuda, into.data(), base + half, half));
    EXPECT_EQ(into, kept);
    words across(8);
    expect_ok(copy_and_wait(*cuda, across.data(), base + half - 32, 64));
    EXPECT_EQ(across[3], kept.back());
    EXPECT_EQ(across[4], kept.front());
    EXPECT_EQ(segment->commit(0, segment->reserved_bytes() + 1).failure().code(), OMPX_ERR_RANGE);
}

TEST(device_real_test, more_than_the_device_has_is_refused_and_changes_nothing) {
    std::size_t const total = cuda->describe(zero).value().total_bytes;
    auto reserved = cuda->reserve(zero, 2 * total);
    if (!reserved.ok()) { // where a reservation is committed at once
        EXPECT_EQ(reserved.failure().code(), OMPX_ERR_NOMEM);
        return;
    }
    auto segment = reserved.take();
    EXPECT_EQ(segment->commit(0, 2 * total).failure().code(), OMPX_ERR_NOMEM);
    EXPECT_EQ(segment->committed_bytes(), 0U);
    expect_ok(segment->commit(0, mebibyte));
}

TEST(device_real_test, memory_goes_back_when_it_is_given_back) {
    std::size_t const nbytes = large();
    auto kept = reserve(mebibyte, mebibyte); // the context stays for all measurements
    std::size_t const before = cuda->describe(zero).value().free_bytes;
    for (int round = 0; round < 20; ++round) {
        auto const segment = reserve(nbytes, nbytes);
    }
    // Others may use the device too; what leaked would be twenty times as much.
    EXPECT_GT(cuda->describe(zero).value().free_bytes + nbytes, before);
}

TEST(device_real_test, addresses_have_owners) {
    auto segment = reserve(4 * mebibyte, 2 * mebibyte);
    auto pinned = cuda->allocate_pinned(mebibyte);
    ASSERT_TRUE(pinned.ok()) << pinned.failure().message();
    int local = 0;
    EXPECT_EQ(cuda->owner_of(segment->base()), zero);
    EXPECT_EQ(cuda->owner_of(segment->base() + segment->committed_bytes() - 1), zero);
    EXPECT_EQ(cuda->owner_of(pinned.value().base()), std::nullopt);
    EXPECT_EQ(cuda->owner_of(&local), std::nullopt);
}

TEST(device_real_test, devices_that_reach_each_other_copy) {
    EXPECT_TRUE(cuda->can_access(zero, zero).value());
    if (cuda->num_devices() < 2 || !cuda->can_access(zero, device_id(1)).value()) {
        GTEST_SKIP() << "there are not two devices that reach each other";
    }
    auto reserved = cuda->reserve(device_id(1), 4 * mebibyte);
    ASSERT_TRUE(reserved.ok()) << reserved.failure().message();
    auto segment = reserved.take();
    expect_ok(segment->commit(0, 2 * mebibyte));
    auto const from = pattern(1000, 9);
    words into(from.size());
    expect_ok(copy_and_wait(*cuda, segment->base(), from.data(), bytes(from)));
    expect_ok(copy_and_wait(*cuda, into.data(), segment->base(), bytes(into)));
    EXPECT_EQ(into, from);
}

/// The second process: maps what comes, checks it, answers, and follows its growth.
void serve(int socket) {
    ::alarm(300);
    shared_handle handle;
    if (!test::receive_handle(socket, handle)) {
        return; // there is no device
    }
    auto made = create_cuda({.path = library()});
    test::require(made.ok(), "backend");
    auto opened = made.value()->open_shared(zero, handle);
    test::require(opened.ok(), opened.ok() ? "" : opened.failure().message().c_str());
    handle.extents.clear();
    peer_memory &peer = *opened.value();
    auto const expected = pattern(2 * mebibyte / sizeof(std::uint64_t), 3);
    words into(expected.size());
    test::require(
        copy_and_wait(*made.value(), into.data(), peer.base() + mebibyte, bytes(into)).ok(),
        "copy of the other process's memory");
    test::require(into == expected, "what the other process has written, across two parts");
    auto const answer = pattern(1000, 4);
    test::require(copy_and_wait(*made.value(), peer.base(), answer.data(), bytes(answer)).ok(),
                  "copy into the other process's memory");
    test::say_word(socket);

    if (!test::receive_handle(socket, handle)) {
        return; // it does not grow
    }
    test::require(peer.map_more(handle).ok(), "mapping of what was added");
    into.resize(1000);
    test::require(
        copy_and_wait(*made.value(), into.data(), peer.base() + 4 * mebibyte, bytes(into)).ok(),
        "copy of what was added");
    test::require(into == pattern(1000, 5), "what was written into what was added");
    test::say_word(socket);
}

// As the buffer of a segment: a part of a shared mapping that begins at no page.
TEST(device_real_test, part_of_a_shared_mapping_is_pinned_and_copied_through) {
    int const fd = ::memfd_create("pinned", MFD_CLOEXEC);
    ASSERT_EQ(::ftruncate(fd, 4 * mebibyte), 0);
    void *const mapped = ::mmap(nullptr, 4 * mebibyte, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ASSERT_NE(mapped, MAP_FAILED);
    ::close(fd);
    {
        auto *const part = reinterpret_cast<std::uint64_t *>(mapped) + 8;
        auto const pinned = cuda->pin(part, 2 * mebibyte);
        ASSERT_TRUE(pinned.ok()) << pinned.failure().message();
        EXPECT_EQ(cuda->owner_of(part), std::nullopt);
        auto segment = reserve(2 * mebibyte, 2 * mebibyte);
        auto const sent = pattern(2 * mebibyte / sizeof(std::uint64_t), 7);
        std::memcpy(part, sent.data(), bytes(sent));
        expect_ok(copy_and_wait(*cuda, segment->base(), part, bytes(sent)));
        std::memset(part, 0, bytes(sent));
        expect_ok(copy_and_wait(*cuda, part, segment->base(), bytes(sent)));
        EXPECT_EQ(std::memcmp(part, sent.data(), bytes(sent)), 0);
    }
    ::munmap(mapped, 4 * mebibyte);
}

// What pinning costs, against what it gains for each copy.
TEST(device_real_test, time_of_pinning) {
    std::size_t const nbytes = large() / 2;
    void *const shared =
        ::mmap(nullptr, nbytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(shared, MAP_FAILED);
    std::memset(shared, 1, nbytes);
    auto const start = std::chrono::steady_clock::now();
    {
        auto pinned = cuda->pin(shared, nbytes);
        ASSERT_TRUE(pinned.ok()) << pinned.failure().message();
        std::printf("figure pin %zu %.2f us\n", nbytes, seconds_since(start) * 1e6);
    }
    std::printf("figure pin-and-unpin %zu %.2f us\n", nbytes, seconds_since(start) * 1e6);
    ::munmap(shared, nbytes);
}

TEST(device_real_test, another_process_maps_the_memory_and_follows_its_growth) {
    properties const of = cuda->describe(zero).value();
    if (!of.memory_shares) {
        GTEST_SKIP() << "the driver does not share memory";
    }
    auto segment = reserve(8 * mebibyte, 2 * mebibyte);
    expect_ok(segment->commit(0, 4 * mebibyte));
    auto const sent = pattern(2 * mebibyte / sizeof(std::uint64_t), 3);
    expect_ok(copy_and_wait(*cuda, segment->base() + mebibyte, sent.data(), bytes(sent)));
    auto shared = segment->share(0, memory::all_extents);
    ASSERT_TRUE(shared.ok()) << shared.failure().message();
    ASSERT_TRUE(test::send_handle(neighbour->socket(), shared.value()));
    ASSERT_TRUE(neighbour->await_word());
    words answer(1000);
    expect_ok(copy_and_wait(*cuda, answer.data(), segment->base(), bytes(answer)));
    EXPECT_EQ(answer, pattern(1000, 4));
    if (of.memory_grows) {
        std::size_t const known = segment->num_extents();
        expect_ok(segment->commit(0, 8 * mebibyte));
        auto const later = pattern(1000, 5);
        expect_ok(copy_and_wait(*cuda, segment->base() + 4 * mebibyte, later.data(), bytes(later)));
        auto added = segment->share(known, memory::all_extents);
        ASSERT_TRUE(added.ok()) << added.failure().message();
        ASSERT_TRUE(test::send_handle(neighbour->socket(), added.value()));
        ASSERT_TRUE(neighbour->await_word());
    }
    EXPECT_EQ(neighbour->exit_code(), 0);
}

TEST(device_real_test, stream_pool_carries_ten_thousand_copies_of_four_threads) {
    constexpr std::size_t threads = 4, copies = 2500, length = 128;
    auto pinned = cuda->allocate_pinned(threads * copies * length * sizeof(std::uint64_t));
    ASSERT_TRUE(pinned.ok()) << pinned.failure().message();
    auto const sent = pattern(threads * copies * length, 6);
    std::memcpy(pinned.value().base(), sent.data(), bytes(sent));
    auto segment = reserve(16 * mebibyte, bytes(sent));
    stream_pool pool(*cuda, {.max_active = 8});
    std::atomic<int> failures = 0;
    auto const start = std::chrono::steady_clock::now();
    {
        std::vector<std::jthread> team;
        team.reserve(threads);
        for (std::size_t t = 0; t < threads; ++t) {
            team.emplace_back([&, t] {
                for (std::size_t i = t; i < threads * copies; i += threads) {
                    std::size_t const at = i * length * sizeof(std::uint64_t);
                    auto const started =
                        pool.copy(zero, segment->base() + at, pinned.value().base() + at,
                                  length * sizeof(std::uint64_t));
                    failures += started.ok() ? 0 : 1;
                    // Some look after their copy, some leave it to the fence.
                    if (started.ok() && i % 7 == 0) {
                        failures += pool.is_done(started.value()).ok() ? 0 : 1;
                    }
                }
            });
        }
    }
    expect_ok(pool.drain());
    std::printf("figure pool-copy %zu %.2f us\n", length * sizeof(std::uint64_t),
                seconds_since(start) / (threads * copies) * 1e6);
    EXPECT_EQ(failures, 0);
    EXPECT_LE(pool.counted().created, 8U);
    EXPECT_GE(pool.counted().reused, threads * copies - 8);
    EXPECT_EQ(pool.counted().failed, 0U);
    words into(sent.size());
    expect_ok(copy_and_wait(*cuda, into.data(), segment->base(), bytes(into)));
    EXPECT_EQ(into, sent);
}

/// Copies of `nbytes` one after the other; prints the median of them.
void measure(const char *name, std::byte *dst, const std::byte *src, std::size_t nbytes) {
    auto made = cuda->make_queue(zero);
    ASSERT_TRUE(made.ok());
    std::vector<double> seconds(21);
    for (double &each : seconds) {
        auto const start = std::chrono::steady_clock::now();
        expect_ok(made.value()->copy(dst, src, nbytes));
        expect_ok(made.value()->wait());
        each = seconds_since(start);
    }
    std::nth_element(seconds.begin(), seconds.begin() + 10, seconds.end());
    if (nbytes < mebibyte) {
        std::printf("figure %s %zu %.2f us\n", name, nbytes, seconds[10] * 1e6);
    } else {
        std::printf("figure %s %zu %.2f GB/s\n", name, nbytes,
                    static_cast<double>(nbytes) / seconds[10] * 1e-9);
    }
}

TEST(device_real_test, copies_of_all_kinds_arrive) {
    std::size_t const half = large() / 2;
    auto segment = reserve(2 * half, 2 * half);
    auto pinned = cuda->allocate_pinned(half);
    ASSERT_TRUE(pinned.ok()) << pinned.failure().message();
    auto const sent = pattern(half / sizeof(std::uint64_t), 7);
    std::memcpy(pinned.value().base(), sent.data(), half);
    auto *const plain = reinterpret_cast<const std::byte *>(sent.data());
    words into(sent.size());
    auto *const back = reinterpret_cast<std::byte *>(into.data());
    std::byte *const device = segment->base();
    for (std::size_t const nbytes : {std::size_t{8}, std::size_t{65536}, half}) {
        measure("pinned-to-device", device, pinned.value().base(), nbytes);
        measure("device-to-device", device + half, device, nbytes);
        measure("device-to-pinned", pinned.value().base(), device + half, nbytes);
        measure("plain-to-device", device, plain, nbytes);
        measure("device-to-plain", back, device + half, nbytes);
    }
    EXPECT_EQ(into, sent);
    EXPECT_EQ(std::memcmp(pinned.value().base(), plain, half), 0);
    auto made = cuda->make_queue(zero);
    ASSERT_TRUE(made.ok());
    auto const start = std::chrono::steady_clock::now();
    for (int i = 0; i < 1000; ++i) {
        EXPECT_TRUE(made.value()->is_idle().value());
    }
    std::printf("figure question-of-idle-queue 0 %.3f us\n", seconds_since(start) * 1e3);
}

int run(int argc, char **argv) {
    ::testing::InitGoogleTest(&argc, argv);
    // Before the driver starts: a process that was forked after that cannot use it.
    test::second_process second(serve);
    auto made = create_cuda({.path = library()});
    if (!made.ok()) {
        std::printf("skipped: %s\n", made.failure().message().c_str());
        return skipped;
    }
    auto const owned = made.take();
    cuda = owned.get();
    neighbour = &second;
    return RUN_ALL_TESTS();
}

} // namespace
} // namespace diomp::device

int main(int argc, char **argv) { return diomp::device::run(argc, argv); }
