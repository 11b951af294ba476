// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Devices of services: addresses that the process has itself, which side of a copy is the device's,
// and errors of the service.
#include "base/sanitizer.h"
#include "offload/internal/service_backend.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <string>
#include <sys/mman.h>
#include <vector>

namespace diomp::offload {
namespace {

using device::device_id;

constexpr std::size_t page = 4096;

/// The memory of its devices has the addresses that the test says.
class scripted_devices final : public service_devices {
public:
    std::deque<std::uint64_t> next_addresses;
    std::uint64_t next_segment = 0;                    ///< 0: there is none
    std::map<std::uint64_t, std::vector<char>> memory; ///< [address]
    std::vector<std::uint64_t> released;
    std::map<int, std::uint64_t> preferred_of; ///< addresses of segments
    int fails_after = -1;                      ///< copies; -1: none fails

    std::optional<description> describe(int index) override {
        return index == 0 ? std::optional(description{"a GPU", 1 << 20}) : std::nullopt;
    }
    int num_devices() override { return 2; }
    result<std::uint64_t> allocate(int /*index*/, std::size_t nbytes) override {
        if (next_addresses.empty()) {
            return error(OMPX_ERR_NOMEM, "the device has no space");
        }
        std::uint64_t const address = next_addresses.front();
        next_addresses.pop_front();
        memory[address].resize(nbytes);
        return address;
    }
    std::uint64_t allocate_segment(int index, std::size_t nbytes,
                                   std::uint64_t preferred) override {
        preferred_of[index] = preferred;
        std::uint64_t const address = std::exchange(next_segment, 0);
        if (address != 0) {
            memory[address].resize(nbytes);
        }
        return address;
    }
    void release(int /*index*/, std::uint64_t address) override {
        released.push_back(address);
        EXPECT_EQ(memory.erase(address), 1U);
    }
    status write(int index, std::uint64_t to, const void *from, std::size_t nbytes) override {
        DIOMP_TRY(count(index));
        std::memcpy(at(to), from, nbytes);
        return {};
    }
    status read(int index, void *to, std::uint64_t from, std::size_t nbytes) override {
        DIOMP_TRY(count(index));
        std::memcpy(to, at(from), nbytes);
        return {};
    }
    status copy(int index, std::uint64_t to, std::uint64_t from, std::size_t nbytes) override {
        DIOMP_TRY(count(index));
        std::memmove(at(to), at(from), nbytes);
        return {};
    }

private:
    char *at(std::uint64_t address) {
        auto &[base, bytes] = *std::prev(memory.upper_bound(address));
        return bytes.data() + (address - base);
    }
    status count(int index) {
        EXPECT_EQ(index, 0);
        return fails_after >= 0 && fails_after-- == 0
                   ? status(error(OMPX_ERR_PEER, "the service is gone"))
                   : status();
    }
};

/// A range of addresses that this process uses, or used.
std::uint64_t make_range(std::size_t nbytes, bool stays) {
    void *const made =
        ::mmap(nullptr, nbytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT_NE(made, MAP_FAILED);
    if (!stays) {
        ::munmap(made, nbytes);
    }
    return reinterpret_cast<std::uintptr_t>(made);
}

class service_backend_test : public ::testing::Test {
protected:
    std::unique_ptr<device::memory> reserve(std::size_t nbytes = 4 * page) {
        gpus.next_addresses.push_back(make_range(16 * page, false) + 64);
        auto made = backend.reserve(device_id(0), nbytes);
        EXPECT_TRUE(made);
        return made.take();
    }

    scripted_devices gpus;
    service_backend backend{gpus};
};

TEST_F(service_backend_test, devices_are_asked_for_segments_at_addresses_of_their_own) {
    constexpr std::size_t nbytes = 4 * page;
    std::array<std::unique_ptr<device::memory>, 2> made;
    for (int const device : {0, 1}) {
        gpus.next_addresses.push_back(make_range(nbytes + page, false) + 64);
        made[static_cast<std::size_t>(device)] = backend.reserve(device_id(device), nbytes).take();
    }
    if (!has_thread_sanitizer()) {
        EXPECT_NE(gpus.preferred_of[0], 0U);
        EXPECT_GE(gpus.preferred_of[1], gpus.preferred_of[0] + nbytes);
    }
}

TEST_F(service_backend_test, the_segment_of_calls_in_regions_is_used_where_it_can_be) {
    gpus.next_segment = make_range(16 * page, false);
    std::uint64_t const segment = gpus.next_segment;
    {
        auto const made = backend.reserve(device_id(0), 4 * page);
        ASSERT_TRUE(made);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(made.value()->base()), segment);
        EXPECT_EQ(gpus.memory.begin()->second.size(), 4 * page);
    }
    EXPECT_EQ(gpus.released, std::vector{segment});
    // Addresses that this process uses, or that begin within a page: other memory.
    for (std::uint64_t const useless :
         {make_range(16 * page, true), make_range(64 * page, true) + 128}) {
        gpus.next_segment = useless;
        gpus.released.clear();
        auto const other = reserve();
        EXPECT_NE(reinterpret_cast<std::uintptr_t>(other->base()), useless);
        EXPECT_EQ(gpus.released, std::vector{useless});
    }
}

TEST_F(service_backend_test, addresses_are_pages_of_the_device_that_the_process_lacks) {
    auto const memory = reserve(4 * page - 100);
    EXPECT_EQ(memory->reserved_bytes(), 4 * page);
    EXPECT_EQ(memory->committed_bytes(), 4 * page);
    auto const base = reinterpret_cast<std::uintptr_t>(memory->base());
    EXPECT_EQ(base % page, 0U);
    EXPECT_GE(base, gpus.memory.begin()->first);
    EXPECT_LE(base + 4 * page, gpus.memory.begin()->first + gpus.memory.begin()->second.size());
    // They are reserved: nothing else gets them.
    EXPECT_EQ(::mmap(memory->base(), page, PROT_READ,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
              MAP_FAILED);
    EXPECT_EQ(backend.owner_of(memory->base() + 4 * page - 1), device_id(0));
    EXPECT_EQ(backend.owner_of(memory->base() + 4 * page), std::nullopt);
    EXPECT_EQ(backend.owner_of(memory->base() - 1), std::nullopt);
}

TEST_F(service_backend_test, memory_at_addresses_of_the_process_is_given_back) {
    std::uint64_t const first = make_range(16 * page, true);
    std::uint64_t const second = make_range(16 * page, true);
    gpus.next_addresses = {first, second};
    auto const memory = reserve();
    EXPECT_EQ(gpus.released, (std::vector{first, second}));
    EXPECT_EQ(gpus.memory.size(), 1U);
}

TEST_F(service_backend_test, two_devices_at_the_same_addresses_get_different_ones) {
    auto const memory = reserve();
    gpus.next_addresses.push_back(reinterpret_cast<std::uintptr_t>(memory->base()) + page);
    auto const other = reserve();
    EXPECT_NE(memory->base(), other->base());
    EXPECT_EQ(gpus.released.size(), 1U);
}

TEST_F(service_backend_test, it_ends_when_no_addresses_are_free) {
    std::uint64_t const used = make_range(16 * 16 * page, true);
    for (unsigned i = 0; i < 9; ++i) {
        gpus.next_addresses.push_back(used + i * 16 * page);
    }
    auto const made = backend.reserve(device_id(0), page);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.failure().code(), OMPX_ERR_NOMEM);
    EXPECT_EQ(gpus.released.size(), 8U);
    EXPECT_TRUE(gpus.memory.empty());
}

TEST_F(service_backend_test, a_full_device_is_an_error_that_keeps_nothing) {
    gpus.next_addresses = {make_range(16 * page, true)};
    auto const made = backend.reserve(device_id(0), page);
    ASSERT_FALSE(made);
    EXPECT_NE(made.failure().message().find("no space"), std::string::npos);
    EXPECT_TRUE(gpus.memory.empty());
}

TEST_F(service_backend_test, released_memory_leaves_its_addresses) {
    auto memory = reserve();
    std::byte *const base = memory->base();
    memory.reset();
    EXPECT_EQ(gpus.released.size(), 1U);
    EXPECT_EQ(backend.owner_of(base), std::nullopt);
    EXPECT_EQ(
        ::mmap(base, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
        base);
    ::munmap(base, page);
}

TEST_F(service_backend_test, copies_in_all_directions) {
    auto const memory = reserve();
    auto queue = backend.make_queue(device_id(0));
    ASSERT_TRUE(queue);
    device::queue &by = *queue.value();
    char const sent[] = "from the host";
    char got[sizeof sent] = {};
    std::byte *const end = memory->base() + 4 * page - sizeof sent;
    EXPECT_TRUE(by.copy(memory->base() + 7, sent, sizeof sent));
    EXPECT_TRUE(by.copy(end, memory->base() + 7, sizeof sent));
    EXPECT_TRUE(by.copy(got, end, sizeof sent));
    EXPECT_STREQ(got, sent);
    char other[sizeof sent] = {};
    EXPECT_TRUE(by.copy(other, got, sizeof sent)); // buffers of the runtime
    EXPECT_STREQ(other, sent);
    EXPECT_TRUE(by.copy(end, sent, 0));
    EXPECT_TRUE(by.is_idle() && by.is_idle().value());
    EXPECT_TRUE(by.wait());
    gpus.fails_after = 1;
    EXPECT_TRUE(by.copy(end, sent, 1));
    status const failed = by.copy(end, sent, 1);
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.failure().code(), OMPX_ERR_PEER);
}

TEST_F(service_backend_test, registered_memory_gets_addresses_of_the_process) {
    // The device has this memory where the process has its own.
    std::uint64_t const base = make_range(4 * page, true);
    gpus.memory[base].resize(4 * page);
    std::byte *kept = nullptr;
    {
        service_backend own(gpus);
        auto const first = own.register_memory(device_id(0), base + 100, 8);
        auto const second =
            own.register_memory(device_id(0), base + 108, page); // partly in that page
        ASSERT_TRUE(first && second);
        EXPECT_EQ(own.register_memory(device_id(0), base + 100, 8).value(), first.value());
        EXPECT_EQ(own.register_memory(device_id(0), base + 108, page).value(), second.value());
        kept = first.value();
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(kept) % page, 100U);
        EXPECT_EQ(own.owner_of(kept), device_id(0));
        EXPECT_EQ(own.owner_of(second.value() + page - 1), device_id(0));
        EXPECT_EQ(own.owner_of(reinterpret_cast<const void *>(base + 100)), std::nullopt);
        auto const other = own.register_memory(device_id(1), base + 100, 8);
        EXPECT_EQ(own.owner_of(other.value()), device_id(1));
        auto queue = own.make_queue(device_id(0));
        std::uint64_t const sent[2] = {5, 6};
        std::uint64_t got = 0;
        EXPECT_TRUE(queue.value()->copy(first.value(), sent, sizeof sent));
        EXPECT_TRUE(queue.value()->copy(&got, second.value(), sizeof got)); // the same memory
        EXPECT_EQ(got, 6U);
        EXPECT_TRUE(queue.value()->copy(second.value() + 50, first.value(), 8));
        EXPECT_TRUE(queue.value()->copy(&got, second.value() + 50, sizeof got));
        EXPECT_EQ(got, 5U);
        EXPECT_EQ(own.register_memory(device_id(2), base, 8).failure().code(), OMPX_ERR_ARG);
    }
    EXPECT_EQ(::mmap(kept - 100, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
                     -1, 0),
              kept - 100);
    ::munmap(kept - 100, page);
}

TEST_F(service_backend_test, nothing_is_shared_or_reached_by_others) {
    auto const memory = reserve();
    EXPECT_EQ(memory->share(0, device::memory::all_extents).failure().code(), OMPX_ERR_UNSUPPORTED);
    EXPECT_EQ(backend.open_shared(device_id(0), {}).failure().code(), OMPX_ERR_UNSUPPORTED);
    EXPECT_FALSE(backend.can_access(device_id(0), device_id(1)).value());
    EXPECT_EQ(backend.make_current(device_id(0)).failure().code(), OMPX_ERR_UNSUPPORTED);
    EXPECT_EQ(backend.make_queue(device_id(2)).failure().code(), OMPX_ERR_ARG);
    EXPECT_EQ(backend.describe(device_id(1)).failure().code(), OMPX_ERR_UNSUPPORTED);
    EXPECT_EQ(backend.describe(device_id(0)).value().total_bytes, std::size_t{1} << 20);
    auto pinned = backend.allocate_pinned(100);
    ASSERT_TRUE(pinned);
    std::memset(pinned.value().base(), 1, 100);
    char kept[100];
    EXPECT_TRUE(backend.pin(kept, sizeof kept));
}

} // namespace
} // namespace diomp::offload
