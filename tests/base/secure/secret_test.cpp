// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/secure/secret.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <type_traits>

namespace {

using namespace diomp::secure;

TEST(secure_secret, random_ones_differ) {
    secret const one = secret::random();
    secret const other = secret::random();
    EXPECT_FALSE(one == other);
    EXPECT_TRUE(one == one.clone());
}

TEST(secure_secret, the_text_of_one_makes_it_again) {
    secret const one = secret::random();
    std::string text = one.encode();
    EXPECT_EQ(text.size(), 64);
    auto const again = secret::decode(text);
    ASSERT_TRUE(again.ok());
    EXPECT_TRUE(again.value() == one);
    erase(text);
    EXPECT_TRUE(text.empty());
}

TEST(secure_secret, other_texts_are_errors) {
    std::string const good = secret::random().encode();
    for (std::string const &text :
         {std::string(), good.substr(1), good + "0", "g" + good.substr(1), good + good}) {
        auto const decoded = secret::decode(text);
        ASSERT_FALSE(decoded.ok());
        EXPECT_EQ(decoded.failure().message().find(text.substr(0, 8)),
                  text.empty() ? 0 : std::string::npos); // it is not in the message
    }
}

// Client and service may be of different releases: the hash of a token stays what it is.
TEST(secure_secret, a_text_gives_the_same_secret_always) {
    EXPECT_TRUE(secret::from_text("token") == secret::from_text("token"));
    EXPECT_FALSE(secret::from_text("token") == secret::from_text("token "));
    EXPECT_EQ(secret::from_text("0123456789abcdef").encode(),
              "122603fa874029ed8186dd006844ed77272fb4944a336ea8883f35f16bf10a41");
}

TEST(secure_secret, it_cannot_be_copied_or_printed_by_accident) {
    static_assert(!std::is_copy_constructible_v<secret>);
    static_assert(!std::is_convertible_v<secret, std::string>);
    static_assert(!std::is_convertible_v<secret, std::string_view>);
}

/// What the kernel says about the mapping that an address is in (proc_pid_smaps(5)).
std::string flags_of(const void *address) {
    auto const wanted = reinterpret_cast<std::uintptr_t>(address);
    std::ifstream maps("/proc/self/smaps");
    bool is_there = false;
    for (std::string line; std::getline(maps, line);) {
        unsigned long begin = 0;
        unsigned long end = 0;
        if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) {
            is_there = begin <= wanted && wanted < end;
        } else if (is_there && line.starts_with("VmFlags:")) {
            return line + " ";
        }
    }
    return {};
}

TEST(secure_secret, its_memory_is_not_in_core_files) {
    secret const one = secret::random();
    EXPECT_NE(flags_of(one.bytes().data()).find(" dd "), std::string::npos);
}

TEST(secure_secret, keys_of_connections_are_zeroed) {
    alignas(connection_key) unsigned char memory[sizeof(connection_key)];
    auto *const key = new (memory) connection_key;
    std::fill_n(key->data(), key_bytes, static_cast<unsigned char>(0x77));
    key->~connection_key();
    for (unsigned char const volatile &each : memory) {
        EXPECT_EQ(each, 0);
    }
}

} // namespace
