// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "services/remote_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace diomp::run {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string refused(const char *text) {
    auto const parsed = parse_device_hosts(text);
    EXPECT_FALSE(parsed.ok()) << text;
    return parsed.ok() ? "" : parsed.failure().message();
}

TEST(remote_devices, hosts_with_and_without_numbers) {
    auto const parsed = parse_device_hosts("a,b:2,c:cpu:4,d:cpu,me@e:2,[fe80::1]:3,[::1]");
    ASSERT_TRUE(parsed.ok()) << parsed.failure().message();
    EXPECT_THAT(parsed.value(),
                ElementsAre(device_host{"a", 1}, device_host{"b", 2}, device_host{"c", 4},
                            device_host{"d", 1}, device_host{"me@e", 2}, device_host{"fe80::1", 3},
                            device_host{"::1", 1}));
}

TEST(remote_devices, gpus_are_all_of_a_host_or_so_many) {
    EXPECT_THAT(parse_device_hosts("a:cuda,b:amdgpu:2,a:2,[::1]:cuda:1").value(),
                ElementsAre(device_host{"a", 0, "cuda"}, device_host{"b", 2, "amdgpu"},
                            device_host{"a", 2}, device_host{"::1", 1, "cuda"}));
    EXPECT_THAT(services_for(parse_device_hosts("a:cuda:2,a:cuda,a:cuda:3").value()),
                ElementsAre(device_host{"a", 0, "cuda"}));
}

TEST(remote_devices, one_service_has_all_devices_of_a_name) {
    auto const hosts = parse_device_hosts("a,b,a:cpu:2").value();
    EXPECT_THAT(hosts, ElementsAre(device_host{"a", 1}, device_host{"b", 1}, device_host{"a", 2}));
    EXPECT_THAT(services_for(hosts), ElementsAre(device_host{"a", 3}, device_host{"b", 1}));
    EXPECT_THAT(refused("a:4096,a"), HasSubstr("more than 4096 devices of a"));
}

TEST(remote_devices, what_is_no_list_is_refused) {
    EXPECT_THAT(refused(""), HasSubstr("not a host name"));
    EXPECT_THAT(refused("a,"), HasSubstr("not a host name"));
    EXPECT_THAT(refused("-oProxyCommand=x"), HasSubstr("not a host name"));
    for (const char *text : {"a:0", "a:4097", "a:x", "a:", "a:gpu:1", "a:cpu:", "a:cpu2", "a:1:2",
                             "fe80::1", "[::1]2", "a:cpu:cpu:2"}) {
        EXPECT_THAT(refused(text), HasSubstr("is not HOST, HOST:N, HOST:KIND or HOST:KIND:N"))
            << text;
    }
}

TEST(remote_devices, each_rank_needs_one) {
    std::vector<device_host> const hosts{{"a", 1}, {"b", 2}};
    EXPECT_TRUE(check_devices(hosts, 3).ok());
    EXPECT_TRUE(check_devices({}, 3).ok());                           // nobody has asked for any
    EXPECT_TRUE(check_devices({{"a", 0, "cuda"}, {"b", 1}}, 3).ok()); // not known before it runs
    EXPECT_THAT(assign_devices({{"h", 2}}, {{"h", 1, 2}}, 3).failure().message(),
                HasSubstr("2 devices for 3 ranks"));
    auto const fit = check_devices(hosts, 4);
    ASSERT_FALSE(fit.ok());
    EXPECT_THAT(fit.failure().message(), HasSubstr("3 devices for 4 ranks"));
}

TEST(remote_devices, shares_are_blocks) {
    std::vector<device_host> const hosts{{"a", 2}, {"b", 3}};
    std::vector<device_service> const services{{"10.0.0.1", 7, 2}, {"fe80::1", 8, 3}};
    EXPECT_THAT(assign_devices(hosts, services, 1).value(),
                ElementsAre("10.0.0.1:7@0*2,[fe80::1]:8@0*3"));
    EXPECT_THAT(assign_devices(hosts, services, 2).value(),
                ElementsAre("10.0.0.1:7@0*2,[fe80::1]:8@0*1", "[fe80::1]:8@1*2"));
    EXPECT_THAT(assign_devices(hosts, services, 5).value(),
                ElementsAre("10.0.0.1:7@0*1", "10.0.0.1:7@1*1", "[fe80::1]:8@0*1",
                            "[fe80::1]:8@1*1", "[fe80::1]:8@2*1"));
}

TEST(remote_devices, are_in_the_order_of_the_list) {
    std::vector<device_service> const services{{"a", 7, 3}, {"b", 8, 1}};
    EXPECT_THAT(assign_devices({{"a", 1}, {"b", 1}, {"a", 2}}, services, 1).value(),
                ElementsAre("a:7@0*1,b:8@0*1,a:7@1*2"));
    EXPECT_THAT(assign_devices({{"a", 1}, {"b", 1}, {"a", 2}}, services, 4).value(),
                ElementsAre("a:7@0*1", "b:8@0*1", "a:7@1*1", "a:7@2*1"));
    EXPECT_THAT(assign_devices({{"a", 2}, {"b", 1}, {"a", 1}}, services, 2).value(),
                ElementsAre("a:7@0*2", "b:8@0*1,a:7@2*1"));
    // All that no other entry names; two entries for all of them are one.
    std::vector<device_host> const all{
        {"a", 0, "cuda"}, {"b", 1}, {"a", 1, "cuda"}, {"a", 0, "cuda"}};
    EXPECT_THAT(assign_devices(all, services, 1).value(), ElementsAre("a:7@0*2,b:8@0*1,a:7@2*1"));
    EXPECT_THAT(assign_devices({{"a", 2, "cuda"}, {"b", 1}, {"a", 2, "cuda"}}, services, 1)
                    .failure()
                    .message(),
                HasSubstr("host a has 3 cuda devices, 4 are requested"));
}

TEST(remote_devices, helper_threads_for_devices_and_processors) {
    EXPECT_EQ(helper_threads("h:1@0*1", 1), 2);
    EXPECT_EQ(helper_threads("h:1@0*1", 4), 4);
    EXPECT_EQ(helper_threads("h:1@0*1", 64), 8);
    EXPECT_EQ(helper_threads("h:1@0*3,[fe80::1]:8@1*4", 2), 7);
    EXPECT_EQ(helper_threads("h:1@0*40", 2), 16);
}

TEST(remote_devices, shares_differ_by_one_device_at_most) {
    for (int devices = 1; devices <= 9; ++devices) {
        for (int ranks = 1; ranks <= devices; ++ranks) {
            int next = 0;
            auto const shares = assign_devices({{"h", devices}}, {{"h", 1, devices}}, ranks);
            for (const std::string &share : shares.value()) {
                int first = -1;
                int count = 0;
                ASSERT_EQ(std::sscanf(share.c_str(), "h:1@%d*%d", &first, &count), 2) << share;
                EXPECT_EQ(first, next);
                EXPECT_GE(count, devices / ranks);
                EXPECT_LE(count, (devices + ranks - 1) / ranks);
                next += count;
            }
            EXPECT_EQ(next, devices);
        }
    }
}

} // namespace
} // namespace diomp::run
