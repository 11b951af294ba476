// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/remote/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace diomp::offload::remote {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<service_address> accepted(const std::string &text) {
    auto parsed = parse_services(text);
    EXPECT_TRUE(parsed.ok()) << text;
    return parsed.ok() ? parsed.take() : std::vector<service_address>{};
}

std::string refused(const std::string &text) {
    auto const parsed = parse_services(text);
    EXPECT_FALSE(parsed.ok()) << text;
    return parsed.ok() ? "" : parsed.failure().message();
}

TEST(remote_services, everything_but_the_host_has_a_default) {
    EXPECT_THAT(accepted("hosta"), ElementsAre(service_address{"hosta", default_port, 0, 0}));
    EXPECT_THAT(accepted(""), ElementsAre());
}

TEST(remote_services, a_part_of_a_service_is_a_first_device_and_a_count) {
    EXPECT_THAT(accepted("a:17*2,a:17@2*3,a:17@5"),
                ElementsAre(service_address{"a", 17, 0, 2}, service_address{"a", 17, 2, 3},
                            service_address{"a", 17, 5, 0}));
    EXPECT_THAT(accepted("a@1"), ElementsAre(service_address{"a", default_port, 1, 0}));
}

TEST(remote_services, addresses_with_colons_stand_in_brackets) {
    EXPECT_THAT(accepted("[fe80::1]:17@4095*1,[::1]"),
                ElementsAre(service_address{"fe80::1", 17, 4095, 1},
                            service_address{"::1", default_port, 0, 0}));
    EXPECT_THAT(refused("[::1:17"), HasSubstr("']' is missing"));
}

TEST(remote_services, what_is_wrong_is_said) {
    EXPECT_THAT(refused("a:17@-1"), HasSubstr("first device"));
    EXPECT_THAT(refused("a:17@4096"), HasSubstr("first device"));
    EXPECT_THAT(refused("a:17@"), HasSubstr("first device"));
    EXPECT_THAT(refused("a:17*0"), HasSubstr("number of devices"));
    EXPECT_THAT(refused("a:17*2@1"), HasSubstr("number of devices")); // the other way round
    EXPECT_THAT(refused("a:65536"), HasSubstr("port"));
    EXPECT_THAT(refused("a:x@1"), HasSubstr("port"));
    EXPECT_THAT(refused(":17"), HasSubstr("host is missing"));
    EXPECT_THAT(refused("a,,b"), HasSubstr("host is missing"));
}

} // namespace
} // namespace diomp::offload::remote
