// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/secure/frame_codec.h"
#include "base/secure/pairing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

namespace {

using namespace diomp::secure;

constexpr std::size_t most_bytes = 10000;

connection_key make_key(unsigned char first) {
    start_library();
    connection_key key;
    for (std::size_t i = 0; i < key_bytes; ++i) {
        key.data()[i] = static_cast<unsigned char>(first + i);
    }
    return key;
}

/// Gives a decoder all bytes, so many at a time.
std::vector<std::string> decode(frame_decoder &by, std::string_view stream,
                                std::size_t step = std::string::npos) {
    std::vector<std::string> frames;
    while (!stream.empty()) {
        auto const space = by.space();
        std::size_t const count = std::min({stream.size(), step, space.size()});
        std::memcpy(space.data(), stream.data(), count);
        by.commit(count);
        stream.remove_prefix(count);
        while (auto const frame = by.next()) {
            frames.emplace_back(*frame);
        }
    }
    return frames;
}

/// Plain, and with each cipher of this machine.
class secure_frames : public ::testing::TestWithParam<int> {
protected:
    void SetUp() override {
        if (GetParam() > 0 && (available_ciphers() & (1U << GetParam())) == 0) {
            GTEST_SKIP() << "this processor lacks the cipher";
        }
    }
    [[nodiscard]] static bool is_sealed() { return GetParam() > 0; }
    [[nodiscard]] static std::optional<frame_cipher> make_cipher(unsigned char key = 1) {
        return is_sealed() ? std::optional<frame_cipher>(
                                 std::in_place, static_cast<cipher>(GetParam()), make_key(key))
                           : std::nullopt;
    }
    [[nodiscard]] static std::string encode(const std::vector<std::string> &frames) {
        frame_encoder encoder(make_cipher());
        std::string stream;
        for (std::string const &each : frames) {
            encoder.append(stream, each);
        }
        return stream;
    }
    [[nodiscard]] static frame_decoder make_decoder(unsigned char key = 1) {
        return {make_cipher(key), most_bytes};
    }
};

std::string name_mode(const ::testing::TestParamInfo<int> &info) {
    static constexpr const char *names[] = {"plain", "chacha20_poly1305", "aes256_gcm"};
    return names[info.param];
}
INSTANTIATE_TEST_SUITE_P(modes, secure_frames, ::testing::Values(0, 1, 2), name_mode);

std::vector<std::string> some_frames() {
    return {"a", std::string(most_bytes, 'b'), "third", std::string(4096, '\0'), "z"};
}

TEST_P(secure_frames, come_as_they_were_sent_however_the_stream_is_cut) {
    std::string const stream = encode(some_frames());
    for (std::size_t const step :
         {std::size_t{1}, std::size_t{3}, std::size_t{5000}, stream.size()}) {
        frame_decoder decoder = make_decoder();
        EXPECT_EQ(decode(decoder, stream, step), some_frames());
        EXPECT_FALSE(decoder.is_broken());
    }
}

TEST_P(secure_frames, another_process_goes_on_with_them) {
    frame_encoder first(make_cipher());
    frame_encoder second(make_cipher()); // a copy of the first one, as after fork
    std::string stream;
    first.append(stream, "one");
    first.append(stream, "two");
    second.skip_to(first.num_frames());
    second.append(stream, "three");
    EXPECT_EQ(second.num_frames(), 3U);
    frame_decoder decoder = make_decoder();
    EXPECT_EQ(decode(decoder, stream), (std::vector<std::string>{"one", "two", "three"}));
}

TEST_P(secure_frames, numbers_do_not_come_again) {
    if (!is_sealed()) {
        GTEST_SKIP() << "plain frames have no numbers";
    }
    frame_encoder encoder(make_cipher());
    std::string stream;
    encoder.append(stream, "one");
    EXPECT_DEATH(encoder.skip_to(0), "would come again");
}

TEST_P(secure_frames, sizes_are_bounded) {
    frame_decoder decoder = make_decoder();
    EXPECT_TRUE(decode(decoder, encode({std::string(most_bytes + 1, 'x')})).empty());
    EXPECT_TRUE(decoder.is_broken());

    frame_decoder of_zero = make_decoder();
    EXPECT_TRUE(decode(of_zero, std::string(4, '\0')).empty());
    EXPECT_TRUE(of_zero.is_broken());

    frame_decoder shorter(make_cipher(), 4);
    EXPECT_EQ(decode(shorter, encode({"four", "fives"})), std::vector<std::string>{"four"});
    EXPECT_TRUE(shorter.is_broken());
}

TEST_P(secure_frames, memory_grows_with_what_has_come) {
    frame_decoder decoder(make_cipher(), std::size_t{1} << 30);
    decode(decoder, std::string("\x00\x00\x00\x20 some bytes of 512 MiB", 25));
    EXPECT_LT(decoder.space().size(), 100000);
}

TEST_P(secure_frames, an_incomplete_one_is_not_returned) {
    std::string const stream = encode({"first", "second"});
    for (std::size_t count = 0; count < stream.size(); ++count) {
        frame_decoder decoder = make_decoder();
        EXPECT_LE(decode(decoder, stream.substr(0, count)).size(), 1);
        EXPECT_FALSE(decoder.is_broken());
    }
}

TEST_P(secure_frames, a_flipped_bit_is_noticed) {
    if (!is_sealed()) {
        GTEST_SKIP() << "plain frames have no protection";
    }
    std::string const stream = encode({"first", "second"});
    std::size_t const first_bytes = encode({"first"}).size();
    for (std::size_t bit = 0; bit < 8 * stream.size(); ++bit) {
        std::string changed = stream;
        changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << (bit % 8)));
        frame_decoder decoder = make_decoder();
        // A length that has grown makes the decoder wait for more: they come.
        auto const frames = decode(decoder, changed + std::string(most_bytes + 100, 'x'));
        EXPECT_EQ(frames.size(), bit / 8 < first_bytes ? 0 : 1) << "bit " << bit;
        EXPECT_TRUE(decoder.is_broken()) << "bit " << bit;
    }
}

TEST_P(secure_frames, order_and_number_are_protected) {
    if (!is_sealed()) {
        GTEST_SKIP() << "plain frames have no protection";
    }
    std::string const first = encode({"same size"});
    std::string const second = encode({"same size", "SAME SIZE"}).substr(first.size());
    for (std::string const &stream : {second + first, first + first, second}) {
        frame_decoder decoder = make_decoder();
        EXPECT_LE(decode(decoder, stream).size(), 1);
        EXPECT_TRUE(decoder.is_broken());
    }
}

TEST_P(secure_frames, another_key_opens_nothing) {
    if (!is_sealed()) {
        GTEST_SKIP() << "plain frames have no protection";
    }
    frame_decoder decoder = make_decoder(2);
    EXPECT_TRUE(decode(decoder, encode({"text"})).empty());
    EXPECT_TRUE(decoder.is_broken());
}

TEST_P(secure_frames, the_text_is_not_readable_and_differs_each_time) {
    if (!is_sealed()) {
        GTEST_SKIP() << "plain frames have no protection";
    }
    std::string const text(64, 't');
    std::string const stream = encode({text, text});
    EXPECT_EQ(stream.find("tttt"), std::string::npos);
    std::size_t const one = stream.size() / 2;
    EXPECT_NE(stream.substr(4, one - 4), stream.substr(one + 4));
}

TEST(secure_ciphers, the_best_one_of_both_is_chosen) {
    EXPECT_EQ(choose_cipher(0b110, 0b110), cipher::aes256_gcm);
    EXPECT_EQ(choose_cipher(0b110, 0b010), cipher::chacha20_poly1305);
    EXPECT_EQ(choose_cipher(0b010, 0b110), cipher::chacha20_poly1305);
    EXPECT_EQ(choose_cipher(0b010, 0b100), std::nullopt);
    EXPECT_NE(available_ciphers() & 0b010, 0);
}

} // namespace
