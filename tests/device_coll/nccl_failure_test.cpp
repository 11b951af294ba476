// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Life and failure of a vendor's group: what is asked of the library and when, errors, timeouts,
// aborts. Also that the stand-in sees what it should.
#include "device_coll/nccl_fixture.h"

#include <array>

namespace diomp::device_coll::vendor {
namespace {

using coll::endpoint_buffers;
using coll::request;
using sync::operation;
using test::nccl_test;
using ::testing::AllOf;
using ::testing::HasSubstr;

const request sum_of_four{
    .what = operation::allreduce, .amount = 4, .type = OMPX_INT32, .op = OMPX_SUM};

class failure_test : public nccl_test {
protected:
    void expect_load_failure(const char *path, const char *text) {
        auto loaded = vendor_library::load(library_kind::nccl, path);
        ASSERT_FALSE(loaded.ok());
        EXPECT_EQ(loaded.failure().code(), OMPX_ERR_UNSUPPORTED);
        EXPECT_THAT(loaded.failure().message(), HasSubstr(text));
        EXPECT_THAT(loaded.failure().remedy(), HasSubstr("DIOMP_NCCL_LIBRARY"));
    }
    std::vector<endpoint_buffers> at_base() {
        std::vector<endpoint_buffers> with;
        for (std::size_t i = 0; i < own_->size(); ++i) {
            with.push_back({own_->memory(i).base(), own_->memory(i).base(), nullptr});
        }
        return with;
    }
    /// The allreduce fails and leaves nothing behind, not even the wish to try again.
    void expect_end(ompx_status code, const std::string &text) {
        int const aborts = calls("ncclCommAbort");
        status const outcome = allreduce();
        ASSERT_FALSE(outcome.ok());
        EXPECT_EQ(outcome.failure().code(), code);
        EXPECT_THAT(outcome.failure().message(), HasSubstr(text));
        EXPECT_FALSE(own_->group().usable());
        int const after = calls("ncclCommAbort");
        EXPECT_LE(after - aborts, static_cast<int>(own_->size()));
        status const again = own_->group().start(sum_of_four, at_base());
        ASSERT_FALSE(again.ok());
        EXPECT_EQ(again.failure().code(), OMPX_ERR_STATE);
        EXPECT_THAT(again.failure().message(), HasSubstr(text));
        EXPECT_EQ(calls("ncclCommAbort"), after) << "aborted twice";
    }
    void expect_failure_of(const char *demand, ompx_status code, const std::string &text) {
        SCOPED_TRACE(demand);
        ::setenv("FAKE_NCCL_FAIL", demand, 1);
        make_group(2);
        expect_end(code, text);
        ::unsetenv("FAKE_NCCL_FAIL");
        own_.reset();
    }
};

TEST_F(failure_test, library_that_is_not_there_or_not_fit) {
    expect_load_failure("/nowhere/libnccl.so.2", "/nowhere/libnccl.so.2");
    expect_load_failure(FAKE_NCCL_LACKING_LIBRARY, "lacks ncclCommAbort");
    ::setenv("FAKE_NCCL_VERSION", "21304", 1);
    expect_load_failure(FAKE_NCCL_LIBRARY, "NCCL 2.13.4 is too old");
    ::setenv("FAKE_NCCL_VERSION", "2708", 1);
    expect_load_failure(FAKE_NCCL_LIBRARY, "NCCL 2.7.8 is too old");
    ::unsetenv("FAKE_NCCL_VERSION");
    ::setenv("FAKE_NCCL_FAIL", "ncclGetVersion=3", 1);
    expect_load_failure(FAKE_NCCL_LIBRARY, "ncclGetVersion");
}

TEST_F(failure_test, rccl_is_the_same_under_another_name) {
    auto loaded = vendor_library::load(library_kind::rccl, FAKE_NCCL_LIBRARY);
    ASSERT_TRUE(loaded.ok());
    EXPECT_STREQ(loaded.value()->name(), "RCCL");
    EXPECT_EQ(loaded.value()->version_text(), "2.32.3");
    auto absent = vendor_library::load(library_kind::rccl, "/nowhere/librccl.so.1");
    ASSERT_FALSE(absent.ok());
    EXPECT_THAT(absent.failure().remedy(), HasSubstr("DIOMP_RCCL_LIBRARY"));
}

TEST_F(failure_test, unique_ids_differ_or_say_why_there_is_none) {
    load();
    EXPECT_NE(library_->make_unique_id().value().bytes, library_->make_unique_id().value().bytes);
    ::setenv("FAKE_NCCL_FAIL", "ncclGetUniqueId=2", 1);
    auto const none = library_->make_unique_id();
    ASSERT_FALSE(none.ok());
    EXPECT_EQ(none.failure().code(), OMPX_ERR_SYSTEM);
    EXPECT_THAT(none.failure().message(),
                AllOf(HasSubstr("ncclGetUniqueId"), HasSubstr("unhandled system error"),
                      HasSubstr("was told to fail")));
}

TEST_F(failure_test, communicators_are_made_by_the_first_call_and_destroyed_once) {
    int const made = calls("ncclCommInitRankConfig");
    int const destroyed = calls("ncclCommDestroy");
    make_group(3);
    auto const with = at_base();
    ASSERT_TRUE(own_->run({.what = operation::bcast, .amount = 0, .root = 1}, with).ok());
    EXPECT_EQ(calls("ncclCommInitRankConfig"), made) << "nothing to move, nothing to connect";
    ASSERT_TRUE(allreduce().ok());
    ASSERT_TRUE(allreduce().ok());
    EXPECT_EQ(calls("ncclCommInitRankConfig"), made + 3);
    EXPECT_EQ(calls("ncclCommDestroy"), destroyed);
    int const aborted = calls("ncclCommAbort");
    own_.reset();
    EXPECT_EQ(calls("ncclCommDestroy"), destroyed + 3);
    EXPECT_EQ(calls("ncclCommAbort"), aborted);
}

TEST_F(failure_test, call_completes_only_when_asked_and_only_one_at_a_time) {
    make_group(2);
    auto const with = at_base();
    EXPECT_TRUE(own_->group().test().value()) << "nothing under way";
    ASSERT_TRUE(own_->group().start(sum_of_four, with).ok());
    EXPECT_THAT(own_->group().describe(),
                HasSubstr("ompx_allreduce by NCCL until all its endpoints"));
    status const second = own_->group().start(sum_of_four, with);
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.failure().code(), OMPX_ERR_STATE);
    EXPECT_THAT(second.failure().message(), HasSubstr("is running"));
    int questions = 0;
    while (!own_->group().test().value()) {
        ASSERT_LT(++questions, 100);
    }
    EXPECT_GT(questions, 3);
    EXPECT_TRUE(own_->group().usable());
}

TEST_F(failure_test, group_that_ends_with_a_call_under_way_aborts) {
    make_group(2);
    ASSERT_TRUE(allreduce().ok());
    int const aborted = calls("ncclCommAbort");
    ASSERT_TRUE(own_->group().start(sum_of_four, at_base()).ok());
    own_.reset();
    EXPECT_EQ(calls("ncclCommAbort"), aborted + 2);
}

TEST_F(failure_test, refused_calls_tell_which_and_end_the_group) {
    expect_failure_of("ncclGroupStart=3", OMPX_ERR_SYSTEM, "ncclGroupStart");
    expect_failure_of("ncclGroupEnd=2", OMPX_ERR_SYSTEM, "ncclGroupEnd");
    expect_failure_of("ncclCommInitRankConfig#2=2", OMPX_ERR_SYSTEM,
                      "ncclCommInitRankConfig of endpoint 1 (device 1)");
    expect_failure_of("ncclAllReduce#2=4", OMPX_ERR_ARG, "ncclAllReduce of endpoint 1");
    expect_failure_of("ncclGroupEnd#2=2", OMPX_ERR_SYSTEM, "ncclGroupEnd of ompx_allreduce");
    expect_failure_of("ncclCommGetAsyncError#5=3", OMPX_ERR_SYSTEM, "ncclCommGetAsyncError");
}

TEST_F(failure_test, refused_call_leaves_no_group_open) {
    expect_failure_of("ncclAllReduce=4", OMPX_ERR_ARG, "ncclAllReduce");
    make_group(2);
    EXPECT_TRUE(allreduce().ok()) << "would have been swallowed";
}

TEST_F(failure_test, asynchronous_error_is_told_with_the_librarys_words) {
    make_group(3);
    ASSERT_TRUE(allreduce().ok());
    ::setenv("FAKE_NCCL_ASYNC", "6@1", 1);
    expect_end(OMPX_ERR_PEER, "ompx_allreduce on endpoint 1 (device 1)");
    ::unsetenv("FAKE_NCCL_ASYNC");
    status const again = allreduce();
    EXPECT_THAT(again.failure().message(), HasSubstr("a link went down"));
}

TEST_F(failure_test, error_of_the_driver_ends_the_group) {
    make_group(2);
    ASSERT_TRUE(allreduce().ok());
    ::setenv("FAKE_CUDA_FAIL", "cuStreamQuery=700", 1);
    expect_end(OMPX_ERR_SYSTEM, "cuStreamQuery");
    ::unsetenv("FAKE_CUDA_FAIL");
}

TEST_F(failure_test, abort_that_fails_is_not_repeated) {
    make_group(2);
    ASSERT_TRUE(own_->group().start(sum_of_four, at_base()).ok());
    ::setenv("FAKE_NCCL_FAIL", "ncclCommAbort#1=3", 1);
    own_->group().abort("the test says so");
    ::unsetenv("FAKE_NCCL_FAIL");
    int const aborts = calls("ncclCommAbort");
    EXPECT_FALSE(own_->group().usable());
    own_.reset();
    EXPECT_EQ(calls("ncclCommAbort"), aborts);
}

TEST_F(failure_test, wait_that_gives_up_aborts) {
    for (const char *where : {"connect", "work"}) {
        SCOPED_TRACE(where);
        make_group(2);
        ::setenv("FAKE_NCCL_STALL", where, 1);
        int const aborts = calls("ncclCommAbort");
        status const outcome =
            own_->group().run(sum_of_four, at_base(), [](function_ref<bool()> is_over) {
                return test::wait_for_seconds(0.05, is_over);
            });
        ASSERT_FALSE(outcome.ok());
        EXPECT_EQ(outcome.failure().code(), OMPX_ERR_TIMEOUT);
        EXPECT_EQ(calls("ncclCommAbort"), aborts + 2);
        EXPECT_FALSE(own_->group().usable());
        ::unsetenv("FAKE_NCCL_STALL");
        own_.reset();
    }
}

TEST_F(failure_test, mistakes_of_the_caller_leave_the_group_as_it_was) {
    make_group(2);
    auto const with = at_base();
    auto const expect = [&](ompx_status code, const request &asked,
                            std::span<const endpoint_buffers> own) {
        status const outcome = own_->group().start(asked, own);
        ASSERT_FALSE(outcome.ok());
        EXPECT_EQ(outcome.failure().code(), code) << outcome.failure().message();
    };
    expect(OMPX_ERR_RANK, {.what = operation::bcast, .amount = 8, .root = 2}, with);
    expect(OMPX_ERR_RANK, {.what = operation::gather, .amount = 8}, with);
    expect(OMPX_ERR_ARG, sum_of_four, std::span(with).first(1));
    expect(OMPX_ERR_ARG, {.what = operation::allgatherv}, with);
    expect(OMPX_ERR_UNSUPPORTED,
           {.what = operation::allreduce, .amount = 1, .type = OMPX_INT16, .op = OMPX_SUM}, with);
    EXPECT_TRUE(allreduce().ok());
}

TEST_F(failure_test, groups_that_make_no_sense) {
    create();
    load();
    auto const refuse = [&](ompx_status code, int count, std::vector<endpoint> own) {
        auto made = vendor_group::create({library_, {}, count, std::move(own)});
        ASSERT_FALSE(made.ok());
        EXPECT_EQ(made.failure().code(), code) << made.failure().message();
    };
    refuse(OMPX_ERR_ARG, 2, {});
    refuse(OMPX_ERR_ARG, 2, {{backend_.get(), zero, 2}});
    refuse(OMPX_ERR_ARG, 2, {{backend_.get(), device::device_id(9), 0}});
    refuse(OMPX_ERR_ARG, 2, {{backend_.get(), zero, 0}, {backend_.get(), one, 0}});
    refuse(OMPX_ERR_UNSUPPORTED, 2, {{backend_.get(), zero, 0}, {backend_.get(), zero, 1}});
    std::array<std::byte, 64> memory;
    auto host = device::create_host({{memory.data(), memory.size()}});
    refuse(OMPX_ERR_UNSUPPORTED, 1, {{host.value().get(), zero, 0}});
}

/// Without this a stand-in that sees nothing would pass all tests.
TEST_F(failure_test, stand_in_sees_what_it_should) {
    make_group(2);
    ASSERT_TRUE(allreduce().ok());
    functions const &raw = library_->calls();
    EXPECT_EQ(take_complaints(), "");
    raw.group_end();
    EXPECT_THAT(take_complaints(), HasSubstr("no group is open"));
    auto id = library_->make_unique_id().value();
    communicator_config config;
    std::array<communicator, 2> made{};
    EXPECT_EQ(raw.init_rank(made.data(), 2, id, 0, &config), unhandled_device_error);
    EXPECT_THAT(take_complaints(), HasSubstr("no device is current"));
    {
        auto const inside = backend_->make_current(zero);
        raw.init_rank(made.data(), 2, id, 0, &config);
        EXPECT_EQ(take_complaints(), "");
        raw.init_rank(&made[1], 2, id, 1, &config);
        EXPECT_THAT(take_complaints(), HasSubstr("outside a group"));
        auto const on = backend_->make_queue(zero).take();
        raw.broadcast(nullptr, nullptr, 4, element::int8, 0, made[0], on->native_stream());
        EXPECT_THAT(take_complaints(), HasSubstr("not ready"));
        code state = success;
        for (int i = 0; i < 4; ++i) {
            raw.get_async_error(made[0], &state);
        }
        EXPECT_EQ(state, invalid_usage) << "both endpoints are on one device";
    }
    raw.abort(made[0]);
    raw.abort(made[1]);
    EXPECT_EQ(take_complaints(), "");
    raw.destroy(made[1]);
    EXPECT_THAT(take_complaints(), HasSubstr("no such communicator"));
}

} // namespace
} // namespace diomp::device_coll::vendor
