// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A vendor's group whose endpoints belong to two processes.
#include "device/two_processes.h"
#include "device_coll/nccl_fixture.h"

#include <sys/socket.h>

namespace diomp::device_coll::vendor {
namespace {

using coll::block_lists;
using coll::endpoint_buffers;
using sync::operation;
using test::nccl_test;
using test::own_endpoints;
using test::require;
using test::second_process;
using ::testing::HasSubstr;

constexpr int count = 4; ///< devices 0 and 1 here, 2 and 3 in the child

void make_trials(own_endpoints &own) {
    std::mt19937_64 random(99);
    for (int i = 0; i < 60 && !::testing::Test::HasFailure(); ++i) {
        own.run_and_check(test::draw_possible(random, count, 6000));
    }
}

/// The child's half: its own backend and library, and the id that comes through the socket.
struct child_half {
    explicit child_half(int socket) {
        auto made = device::create_cuda({.path = FAKE_CUDA_LIBRARY});
        require(made.ok(), "backend");
        backend = made.take();
        auto loaded = vendor_library::load(library_kind::nccl, FAKE_NCCL_LIBRARY);
        require(loaded.ok(), "library");
        unique_id id;
        require(::recv(socket, &id, sizeof(id), 0) == sizeof(id), "id");
        own = std::make_unique<own_endpoints>(*backend, loaded.take(), id, 2, count, count);
    }
    void expect_clean() {
        own.reset();
        backend.reset();
        for (auto const &[library, function] :
             {std::pair{FAKE_NCCL_LIBRARY, "fake_nccl_complaints"},
              std::pair{FAKE_CUDA_LIBRARY, "fake_cuda_complaints"}}) {
            void *const stand_in = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
            auto *const complaints =
                reinterpret_cast<const char *(*)()>(::dlsym(stand_in, function));
            require(*complaints() == 0, complaints());
        }
        require(!::testing::Test::HasFailure(), "no check has failed");
    }
    std::unique_ptr<device::backend> backend;
    std::unique_ptr<own_endpoints> own;
};

class processes_test : public nccl_test {
protected:
    void make_half(int socket) {
        create();
        load();
        auto id = library_->make_unique_id();
        ASSERT_TRUE(id.ok());
        ASSERT_EQ(::send(socket, &id.value(), sizeof(unique_id), 0), ssize_t{sizeof(unique_id)});
        own_ = std::make_unique<own_endpoints>(*backend_, library_, id.value(), 0, 2, count);
    }
};

TEST_F(processes_test, calls_give_what_the_reference_gives) {
    second_process child([](int socket) {
        child_half half(socket);
        make_trials(*half.own);
        half.expect_clean();
    });
    make_half(child.socket());
    make_trials(*own_);
    own_.reset();
    EXPECT_EQ(child.exit_code(), 0);
}

/// Only what is sized may leave a process without anything to do, and it must connect all the same.
TEST_F(processes_test, first_call_has_nothing_for_some) {
    static const auto sizes =
        std::make_shared<block_lists>(block_lists{{{64, 0, 0, 0}, {0, 64, 64, 64}}, {}});
    auto const gather = [](own_endpoints &own) {
        std::vector<endpoint_buffers> with;
        for (std::size_t i = 0; i < own.size(); ++i) {
            with.push_back({own.memory(i).base(), own.memory(i).base() + 4096, nullptr});
        }
        return own.run({.what = operation::gatherv, .root = 1, .blocks = sizes}, with);
    };
    second_process child([&](int socket) {
        child_half half(socket);
        require(gather(*half.own).ok(), "nothing is complete");
        half.expect_clean();
    });
    make_half(child.socket());
    std::memset(own_->memory(0).image() + 4096, 7, 64);
    own_->memory(0).upload();
    status const outcome = gather(*own_);
    ASSERT_TRUE(outcome.ok()) << outcome.failure().message();
    own_->memory(1).download();
    EXPECT_EQ(own_->memory(1).image()[63], std::byte{7});
    EXPECT_EQ(own_->memory(1).image()[64], std::byte{0});
    own_.reset();
    EXPECT_EQ(child.exit_code(), 0);
}

TEST_F(processes_test, process_that_does_not_come_is_a_timeout) {
    second_process child([](int socket) {
        unique_id id;
        require(::recv(socket, &id, sizeof(id), 0) == sizeof(id), "id");
    });
    make_half(child.socket());
    EXPECT_EQ(child.exit_code(), 0);
    std::vector<endpoint_buffers> const with{{own_->memory(0).base(), nullptr, nullptr},
                                             {own_->memory(1).base(), nullptr, nullptr}};
    status const outcome = own_->group().run(
        {.what = operation::bcast, .amount = 8, .root = 0}, with,
        [](function_ref<bool()> is_over) { return test::wait_for_seconds(0.1, is_over); });
    ASSERT_FALSE(outcome.ok());
    EXPECT_EQ(outcome.failure().code(), OMPX_ERR_TIMEOUT);
}

/// The library need not notice; that the stand-in does is what makes the other tests strict.
TEST_F(processes_test, different_calls_are_seen) {
    auto const bcast = [](own_endpoints &own, std::size_t nbytes) {
        std::vector<endpoint_buffers> const with{{own.memory(0).base(), nullptr, nullptr},
                                                 {own.memory(1).base(), nullptr, nullptr}};
        return own.run({.what = operation::bcast, .amount = nbytes, .root = 0}, with);
    };
    second_process child([&](int socket) {
        child_half half(socket);
        require(!bcast(*half.own, 16).ok(), "an error");
    });
    make_half(child.socket());
    status const outcome = bcast(*own_, 8);
    ASSERT_FALSE(outcome.ok());
    EXPECT_THAT(take_complaints(), HasSubstr("makes broadcast of 8"));
    EXPECT_EQ(child.exit_code(), 0);
}

} // namespace
} // namespace diomp::device_coll::vendor
