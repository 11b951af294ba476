// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Device memory in two processes, and devices without virtual memory management.
#include "device/cuda_fixture.h"
#include "device/two_processes.h"

namespace diomp::device {
namespace {

using test::cuda_test;
using test::mebibyte;
using test::receive_handle;
using test::require;
using test::say_word;
using test::second_process;
using test::send_handle;
using ::testing::HasSubstr;

constexpr device_id child_device = device_id(1);

std::unique_ptr<backend> create_in_child() {
    auto made = create_cuda({.path = FAKE_CUDA_LIBRARY});
    require(made.ok(), "backend");
    return made.take();
}

void copy_in_child(backend &of, void *dst, const void *src, std::size_t nbytes) {
    auto made = of.make_queue(child_device);
    require(made.ok(), "queue");
    require(made.value()->copy(dst, src, nbytes).ok(), "copy");
    require(made.value()->wait().ok(), "wait");
}

/// What the stand-in says in the child, where everything must have been given back too.
void require_clean() {
    void *const stand_in = ::dlopen(FAKE_CUDA_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    auto *const complaints =
        reinterpret_cast<const char *(*)()>(::dlsym(stand_in, "fake_cuda_complaints"));
    auto *const alive = reinterpret_cast<int (*)()>(::dlsym(stand_in, "fake_cuda_alive"));
    require(*complaints() == 0, complaints());
    require(alive() == 0, "all is given back");
}

/// Opens what comes, reads, writes, and maps what comes later.
void open_and_follow(int socket) {
    auto const of = create_in_child();
    shared_handle handle;
    require(receive_handle(socket, handle), "handle");
    auto opened = of->open_shared(child_device, handle);
    require(opened.ok(), "opened");
    handle.extents.clear(); // the descriptors are not needed any more
    peer_memory &peer = *opened.value();
    require(peer.mapped_bytes() == 4 * mebibyte, "two parts");
    char text[8] = {};
    copy_in_child(*of, text, peer.base() + 2 * mebibyte - 3, 6);
    require(std::strcmp(text, "across") == 0, "the parent's text across two parts");
    copy_in_child(*of, peer.base() + 100, "answer", 6);
    std::byte const *const base = peer.base();
    say_word(socket);

    require(receive_handle(socket, handle), "added handle");
    require(handle.extents.size() == 1, "only what was added");
    require(peer.map_more(handle).ok(), "map_more");
    require(!peer.map_more(handle).ok(), "the same again");
    require(peer.base() == base && peer.mapped_bytes() == 6 * mebibyte, "grown in place");
    copy_in_child(*of, text, peer.base() + 5 * mebibyte, 5);
    require(std::memcmp(text, "later", 5) == 0, "the parent's text in what was added");
}

TEST_F(cuda_test, memory_is_shared_with_another_process_and_grows_there) {
    second_process child([](int socket) {
        open_and_follow(socket);
        require_clean();
    });
    create();
    auto segment = reserve(zero, 16 * mebibyte);
    ASSERT_TRUE(segment->commit(0, 2 * mebibyte).ok());
    ASSERT_TRUE(segment->commit(0, 4 * mebibyte).ok());
    put(zero, segment->base() + 2 * mebibyte - 3, "across");
    auto shared = segment->share(0, memory::all_extents);
    ASSERT_TRUE(shared.ok());
    EXPECT_EQ(shared.value().reserved_bytes, 16 * mebibyte);
    ASSERT_TRUE(send_handle(child.socket(), shared.value()));
    ASSERT_TRUE(child.await_word());
    EXPECT_EQ(get(zero, segment->base() + 100, 6), "answer");

    std::size_t const before = segment->num_extents();
    ASSERT_TRUE(segment->commit(0, 6 * mebibyte).ok());
    put(zero, segment->base() + 5 * mebibyte, "later");
    auto added = segment->share(before, memory::all_extents);
    ASSERT_TRUE(added.ok());
    ASSERT_TRUE(send_handle(child.socket(), added.value()));
    EXPECT_EQ(child.exit_code(), 0);
}

TEST_F(cuda_test, parts_may_be_committed_and_opened_in_any_order) {
    second_process child([](int socket) {
        auto const of = create_in_child();
        shared_handle handle;
        require(receive_handle(socket, handle), "handle");
        require(handle.extents.size() == 3, "three stretches");
        std::swap(handle.extents[0], handle.extents[2]);
        auto opened = of->open_shared(child_device, handle);
        require(opened.ok(), "opened");
        char text[8] = {};
        copy_in_child(*of, text, opened.value()->base() + 8 * mebibyte - 3, 6);
        require(std::strcmp(text, "across") == 0, "the parent's text across two parts");
    });
    create();
    auto segment = reserve(zero, 16 * mebibyte);
    ASSERT_TRUE(segment->commit(8 * mebibyte, 1).ok());
    ASSERT_TRUE(segment->commit(6 * mebibyte, 6 * mebibyte).ok()); // around it
    EXPECT_EQ(segment->num_extents(), 3U);
    EXPECT_EQ(segment->committed_bytes(), 6 * mebibyte);
    put(zero, segment->base() + 8 * mebibyte - 3, "across");
    auto shared = segment->share(0, memory::all_extents);
    ASSERT_TRUE(shared.ok());
    ASSERT_TRUE(send_handle(child.socket(), shared.value()));
    EXPECT_EQ(child.exit_code(), 0);
}

TEST_F(cuda_test, memory_that_is_not_committed_is_shared_as_nothing) {
    create();
    auto segment = reserve(zero, 4 * mebibyte);
    auto shared = segment->share(0, memory::all_extents);
    ASSERT_TRUE(shared.ok());
    EXPECT_TRUE(shared.value().extents.empty());
    auto opened = backend_->open_shared(one, shared.value());
    ASSERT_TRUE(opened.ok());
    EXPECT_EQ(opened.value()->mapped_bytes(), 0U);
}

TEST_F(cuda_test, handle_that_makes_no_sense_is_refused_and_leaves_nothing) {
    create();
    auto segment = reserve(zero, 4 * mebibyte);
    ASSERT_TRUE(segment->commit(0, 2 * mebibyte).ok());
    ASSERT_TRUE(segment->commit(0, 4 * mebibyte).ok());
    int const before = alive();
    auto const refuse = [&](auto spoil) {
        auto shared = segment->share(0, memory::all_extents);
        ASSERT_TRUE(shared.ok());
        spoil(shared.value());
        EXPECT_FALSE(backend_->open_shared(zero, shared.value()).ok());
        EXPECT_EQ(alive(), before);
    };
    refuse([](shared_handle &of) { of.extents[1].offset_bytes = 0; });
    refuse([](shared_handle &of) { of.extents[1].offset_bytes += 2 * mebibyte; });
    refuse([](shared_handle &of) { of.reserved_bytes = 2 * mebibyte; });
    refuse([](shared_handle &of) { of.extents[1].fd = unique_fd(); });
    refuse([](shared_handle &of) { of.extents[1].fd = unique_fd(::dup(0)); });
    refuse([](shared_handle &) { ::setenv("FAKE_CUDA_FAIL", "cuMemSetAccess#2=999", 1); });
}

TEST_F(cuda_test, parts_that_nobody_asks_for_are_not_exported) {
    create();
    auto segment = reserve(zero, 4 * mebibyte);
    ASSERT_TRUE(segment->commit(0, 2 * mebibyte).ok());
    ASSERT_TRUE(segment->commit(0, 4 * mebibyte).ok());
    ::setenv("FAKE_CUDA_FAIL", "cuMemExportToShareableHandle#2=999", 1);
    auto const first = segment->share(0, 1);
    ::unsetenv("FAKE_CUDA_FAIL");
    ASSERT_TRUE(first.ok());
    ASSERT_EQ(first.value().extents.size(), 1U);
    EXPECT_EQ(first.value().extents[0].offset_bytes, 0U);
    auto const second = segment->share(1, 5);
    ASSERT_TRUE(second.ok());
    ASSERT_EQ(second.value().extents.size(), 1U);
    EXPECT_EQ(second.value().extents[0].offset_bytes, 2 * mebibyte);
}

TEST_F(cuda_test, export_that_fails_closes_what_it_had) {
    create();
    auto segment = reserve(zero, 4 * mebibyte);
    ASSERT_TRUE(segment->commit(0, 2 * mebibyte).ok());
    ASSERT_TRUE(segment->commit(0, 4 * mebibyte).ok());
    int const next = ::dup(0); // the lowest free number
    ::close(next);
    ::setenv("FAKE_CUDA_FAIL", "cuMemExportToShareableHandle#2=999", 1);
    auto const shared = segment->share(0, memory::all_extents);
    ASSERT_FALSE(shared.ok());
    EXPECT_THAT(shared.failure().message(), HasSubstr("cuMemExportToShareableHandle"));
    int const now = ::dup(0);
    EXPECT_EQ(now, next);
    ::close(now);
}

class plain_cuda_test : public cuda_test {
protected:
    void SetUp() override {
        cuda_test::SetUp();
        ::setenv("FAKE_CUDA_VMM", "none", 1);
    }
    void TearDown() override {
        cuda_test::TearDown();
        ::unsetenv("FAKE_CUDA_VMM");
    }
};

TEST_F(plain_cuda_test, reservation_is_there_in_full_and_does_not_grow) {
    create();
    EXPECT_FALSE(backend_->describe(zero).value().memory_grows);
    EXPECT_TRUE(backend_->describe(zero).value().memory_shares);
    auto segment = reserve(zero, 3 * mebibyte);
    EXPECT_EQ(segment->committed_bytes(), 4 * mebibyte);
    EXPECT_EQ(backend_->describe(zero).value().free_bytes, 60 * mebibyte);
    EXPECT_TRUE(segment->commit(0, 4 * mebibyte).ok());
    EXPECT_EQ(segment->commit(0, 4 * mebibyte + 1).failure().code(), OMPX_ERR_RANGE);
    put(zero, segment->base() + 4 * mebibyte - 4, "last");
    EXPECT_EQ(get(zero, segment->base() + 4 * mebibyte - 4, 4), "last");
    EXPECT_EQ(backend_->reserve(zero, 61 * mebibyte).failure().code(), OMPX_ERR_NOMEM);
}

TEST_F(plain_cuda_test, other_device_reaches_it) {
    create();
    auto segment = reserve(zero, mebibyte);
    EXPECT_FALSE(may_touch(one, segment->base()));
    EXPECT_TRUE(backend_->can_access(one, zero).value());
    put(one, segment->base(), "peer");
    EXPECT_EQ(get(zero, segment->base(), 4), "peer");
}

void open_token(int socket) {
    auto const of = create_in_child();
    shared_handle handle;
    require(receive_handle(socket, handle), "handle");
    auto opened = of->open_shared(child_device, handle);
    require(opened.ok(), "opened");
    require(opened.value()->mapped_bytes() == 2 * mebibyte, "all of it");
    char text[8] = {};
    copy_in_child(*of, text, opened.value()->base() + 7, 5);
    require(std::strcmp(text, "token") == 0, "the parent's text");
    copy_in_child(*of, opened.value()->base(), "answer", 6);
}

TEST_F(plain_cuda_test, memory_is_shared_by_token) {
    second_process child([](int socket) {
        open_token(socket);
        require_clean();
    });
    create();
    auto segment = reserve(zero, 2 * mebibyte);
    put(zero, segment->base() + 7, "token");
    auto shared = segment->share(0, memory::all_extents);
    ASSERT_TRUE(shared.ok());
    ASSERT_EQ(shared.value().extents.size(), 1U);
    EXPECT_FALSE(shared.value().extents[0].fd.valid());
    ASSERT_TRUE(send_handle(child.socket(), shared.value()));
    EXPECT_EQ(child.exit_code(), 0);
    EXPECT_EQ(get(zero, segment->base(), 6), "answer");
    EXPECT_TRUE(segment->share(1, memory::all_extents).value().extents.empty());
}

} // namespace
} // namespace diomp::device
