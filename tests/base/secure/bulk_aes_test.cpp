// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// OpenSSL's AES-256-GCM makes and opens what libsodium's does.
#include "base/secure/bulk_aes.h"
#include "base/secure/frame_cipher.h"
#include "base/secure/frame_codec.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace {

using namespace diomp::secure;
using bytes = std::vector<unsigned char>;

class secure_bulk_aes : public ::testing::Test {
protected:
    void SetUp() override {
        start_library();
        for (std::size_t i = 0; i < key_bytes; ++i) {
            key.data()[i] = static_cast<unsigned char>(3 * i + 1);
        }
        if ((available_ciphers() & (1U << static_cast<unsigned>(cipher::aes256_gcm))) == 0) {
            GTEST_SKIP() << "this processor lacks the cipher";
        }
        fast = bulk_aes::create(key);
        if (fast == nullptr) {
            GTEST_SKIP() << "no libcrypto.so.3 on this machine";
        }
    }
    static bytes text_of(std::size_t nbytes) {
        bytes text(nbytes);
        for (std::size_t i = 0; i < nbytes; ++i) {
            text[i] = static_cast<unsigned char>(i * 11 + i / 256);
        }
        return text;
    }
    static std::array<unsigned char, bulk_aes::nonce_bytes> nonce_of(unsigned char number) {
        return {number};
    }

    connection_key key;
    std::unique_ptr<bulk_aes> fast;
    bytes const header{1, 2, 3, 4};
};

TEST_F(secure_bulk_aes, both_libraries_make_the_same_bytes) {
    frame_cipher slow(cipher::aes256_gcm, key);
    unsigned char number = 0;
    for (std::size_t const nbytes : {1U, 15U, 16U, 17U, 1000U, 40000U}) {
        bytes const text = text_of(nbytes);
        bytes by_one(nbytes + frame_cipher::tag_bytes);
        bytes by_other(by_one.size());
        slow.seal(header, text, by_one.data());
        fast->seal(nonce_of(number), header, text, by_other.data());
        EXPECT_EQ(by_one, by_other) << nbytes;
        ++number;
    }
}

TEST_F(secure_bulk_aes, it_opens_in_place_what_has_not_been_changed) {
    frame_cipher slow(cipher::aes256_gcm, key);
    bytes const text = text_of(5000);
    bytes message(text.size() + frame_cipher::tag_bytes);
    slow.seal(header, text, message.data());
    bytes opened = message;
    ASSERT_TRUE(fast->open(nonce_of(0), header, opened, opened.data()));
    opened.resize(text.size());
    EXPECT_EQ(opened, text);
}

TEST_F(secure_bulk_aes, changes_do_not_open_and_leave_no_text) {
    bytes const text = text_of(300);
    bytes message(text.size() + frame_cipher::tag_bytes);
    fast->seal(nonce_of(7), header, text, message.data());
    auto const opens = [&](const bytes &changed, unsigned char number, const bytes &with) {
        bytes into(text.size(), 0xee);
        bool const is_genuine = fast->open(nonce_of(number), with, changed, into.data());
        EXPECT_EQ(into, is_genuine ? text : bytes(text.size(), 0));
        return is_genuine;
    };
    for (std::size_t const at : {std::size_t{0}, std::size_t{150}, message.size() - 1}) {
        bytes changed = message;
        changed[at] ^= 1;
        EXPECT_FALSE(opens(changed, 7, header)) << at;
    }
    EXPECT_FALSE(opens(message, 8, header)) << "another number";
    EXPECT_FALSE(opens(message, 7, {1, 2, 3, 5})) << "another header";
    EXPECT_TRUE(opens(message, 7, header)) << "a failure does not harm the next one";
}

// Both ends take the faster library after the same amount, which neither may notice.
TEST_F(secure_bulk_aes, a_long_stream_opens_to_its_end) {
    frame_encoder encoder(frame_cipher(cipher::aes256_gcm, key));
    frame_decoder decoder(frame_cipher(cipher::aes256_gcm, key), 40000);
    bytes const text = text_of(40000);
    for (int i = 0; i < 100; ++i) {
        bytes frame(encoder.frame_bytes(text.size()));
        encoder.write(frame.data(), text);
        std::span<const unsigned char> rest = frame;
        while (!rest.empty()) {
            auto const space = decoder.space();
            auto const part = rest.first(std::min(rest.size(), space.size()));
            std::memcpy(space.data(), part.data(), part.size());
            decoder.commit(part.size());
            rest = rest.subspan(part.size());
            if (auto const opened = decoder.next()) {
                ASSERT_EQ(opened->size(), text.size());
                ASSERT_EQ(std::memcmp(opened->data(), text.data(), text.size()), 0) << i;
                ASSERT_TRUE(rest.empty());
            }
        }
        ASSERT_FALSE(decoder.is_broken()) << i;
    }
}

} // namespace
