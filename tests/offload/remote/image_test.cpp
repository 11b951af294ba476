// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/elf_view.h"
#include "offload/service/image.h"
#include "offload/service/image_store.h"
#include "offload/service/target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace diomp::offload::service {
namespace {

using testing::Contains;
using testing::HasSubstr;

std::string content_of(const std::string &path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
}

class image_store_test : public testing::Test {
protected:
    image_store_test() { store_ = image_store::create().take(); }
    /// The content of what find() gives; "" if it gives nothing.
    [[nodiscard]] std::string found(const remote::image_id &id) const {
        auto const memory = store_->find(id);
        return memory ? content_of(path_of(*memory)) : std::string();
    }

    std::unique_ptr<image_store> store_;
};

TEST_F(image_store_test, keeps_what_it_is_given) {
    std::string const image(100000, 'i');
    auto const id = remote::identify(image);
    EXPECT_FALSE(store_->find(id).has_value());
    {
        auto const kept = store_->add(id, image);
        ASSERT_TRUE(kept.ok()) << kept.failure().message();
        EXPECT_EQ(content_of(path_of(kept.value())), image);
        EXPECT_EQ(found(id), image);
        EXPECT_LT(::write(kept.value().get(), "j", 1), 0);
        store_->take();
    }
    EXPECT_EQ(found(id), image) << "the service has it";
    EXPECT_FALSE(store_->find(remote::identify("another")).has_value());
}

/// A session that ends before the service has looked: its image is with what it has sent.
TEST_F(image_store_test, an_image_outlives_its_session) {
    std::string const image(1000, 'i');
    auto const id = remote::identify(image);
    pid_t const session = ::fork();
    if (session == 0) {
        std::_Exit(store_->add(id, image) ? 0 : 1);
    }
    int how = 0;
    ::waitpid(session, &how, 0);
    EXPECT_EQ(how, 0);
    EXPECT_FALSE(store_->find(id).has_value());
    store_->take();
    EXPECT_EQ(found(id), image);
}

TEST_F(image_store_test, has_no_room_for_more_than_its_table) {
    for (int i = 0; i < 600; ++i) {
        std::string const image = "image " + std::to_string(i);
        auto const kept = store_->add(remote::identify(image), image);
        ASSERT_TRUE(kept.ok()) << i;
        store_->take();
        if (i == 100) {
            EXPECT_EQ(found(remote::identify(image)), image);
        }
    }
    EXPECT_FALSE(store_->find(remote::identify("image 599")).has_value());
}

TEST_F(image_store_test, refuses_what_is_not_what_was_announced) {
    std::string const image(1000, 'i');
    auto const id = remote::identify(image);
    for (std::string const &other :
         {std::string(1000, 'j'), image + "i", image.substr(1), std::string()}) {
        auto const kept = store_->add(id, other);
        ASSERT_FALSE(kept.ok());
        EXPECT_EQ(kept.failure().code(), OMPX_ERR_ARG);
        EXPECT_FALSE(store_->find(id).has_value());
    }
}

/// As sessions of two clients do: whoever finds an image finds all of it.
TEST_F(image_store_test, writers_do_not_disturb_each_other) {
    std::string const image(3 << 20, 'i');
    auto const id = remote::identify(image);
    std::atomic<bool> done{false};
    std::thread reader([&] {
        while (!done.load()) {
            if (auto const memory = store_->find(id)) {
                EXPECT_EQ(content_of(path_of(*memory)).size(), image.size());
            }
        }
    });
    std::vector<std::thread> writers;
    for (int i = 0; i < 4; ++i) {
        writers.emplace_back([&] {
            for (int round = 0; round < 5; ++round) {
                EXPECT_TRUE(store_->add(id, image).ok());
            }
        });
    }
    for (auto &each : writers) {
        each.join();
    }
    done.store(true);
    reader.join();
    store_->take();
    EXPECT_TRUE(found(id) == image);
}

TEST(image_variables, are_what_can_be_written) {
    std::string const image = content_of(std::getenv("DIOMP_TEST_IMAGE"));
    auto const found = variables_in(image);
    EXPECT_EQ(found.at("values"), 300000 * sizeof(double));
    EXPECT_EQ(found.at("count"), sizeof(int));
    EXPECT_FALSE(found.contains("fixed"));
    EXPECT_FALSE(found.contains("twice"));
}

TEST(image_variables, images_that_are_cut_or_none_have_some_or_none) {
    std::string const image = content_of(std::getenv("DIOMP_TEST_IMAGE"));
    for (std::size_t size = 0; size < image.size(); size += 97) {
        auto const found = variables_in(std::string_view(image).substr(0, size));
        EXPECT_FALSE(found.contains("fixed"));
    }
    EXPECT_TRUE(variables_in("an image").empty());
    EXPECT_TRUE(variables_in(std::string(4096, '\xff')).empty());
}

TEST(image_libraries, are_those_that_it_was_linked_with) {
    std::string const image = content_of(std::getenv("DIOMP_TEST_IMAGE"));
    EXPECT_THAT(elf_view(image).needed(), Contains("libc.so.6"));
    EXPECT_EQ(load_libomptarget_of(std::getenv("DIOMP_TEST_IMAGE")), "") << "needs none";
    for (std::size_t size = 0; size < image.size(); size += 97) {
        for (std::string const &each : elf_view(std::string_view(image).substr(0, size)).needed()) {
            EXPECT_LT(each.size(), image.size());
        }
    }
    EXPECT_TRUE(elf_view("an image").needed().empty());
    EXPECT_EQ(load_libomptarget_of("/no/such/file"), "");
    EXPECT_EQ(load_libomptarget_of(std::getenv("DIOMP_TEST_OTHER_IMAGE")), "libomptarget.so.99.1");
}

TEST(image_set_test, tells_variables) {
    image_set images;
    auto const found = images.load(std::getenv("DIOMP_TEST_IMAGE"), {1, 2, 3},
                                   {{"values", 300000 * sizeof(double)},
                                    {"values", 1U << 30},
                                    {"count", 0},
                                    {"fixed", 16},
                                    {"twice", 8},
                                    {"no_such_symbol", 8}});
    ASSERT_TRUE(found.ok()) << found.failure().message();
    for (std::size_t i = 0; i < found.value().size(); ++i) {
        EXPECT_EQ(found.value()[i].is_variable, i == 0) << i;
    }
}

TEST(image_set_test, finds_symbols_and_data_of_a_library) {
    image_set images;
    remote::image_id const id{1, 2, 3};
    auto const found =
        images.load("libm.so.6", id, {{"cos", 0}, {"no_such_symbol", 0}, {"sin", 0}});
    ASSERT_TRUE(found.ok()) << found.failure().message();
    ASSERT_EQ(found.value().size(), 3U);
    std::uint64_t const cosine = found.value()[0].address;
    ASSERT_NE(cosine, 0U);
    EXPECT_EQ(found.value()[1].address, 0U);
    EXPECT_EQ(reinterpret_cast<double (*)(double)>(cosine)(0.0), 1.0);
    ASSERT_NE(images.name_of(cosine), nullptr);
    EXPECT_EQ(*images.name_of(cosine), "cos");
    EXPECT_EQ(images.name_of(cosine + 1), nullptr);
    EXPECT_EQ(images.name_of(0), nullptr);
    EXPECT_TRUE(images.has(cosine, 1));
    EXPECT_FALSE(images.has(cosine, std::size_t{1} << 40));
    EXPECT_FALSE(images.has(cosine, ~std::size_t{0}));
    int elsewhere = 0;
    EXPECT_FALSE(images.has(reinterpret_cast<std::uint64_t>(&elsewhere), 1));
    EXPECT_FALSE(images.has(0, 1));
    images.unload();
    EXPECT_FALSE(images.has(cosine, 1));
    EXPECT_EQ(images.name_of(cosine), nullptr);
}

/// As by two libraries of a program, or one that is closed and opened again.
TEST_F(image_store_test, an_image_that_is_loaded_again_has_its_own_variables) {
    std::string const image = content_of(std::getenv("DIOMP_TEST_IMAGE"));
    auto const id = remote::identify(image);
    auto const file = store_->add(id, image);
    ASSERT_TRUE(file.ok());
    image_set images;
    std::set<int *> counts;
    for (int round = 0; round < 3; ++round) {
        auto const found = images.load(path_of(file.value()), id, {{"count", sizeof(int)}});
        ASSERT_TRUE(found.ok()) << found.failure().message();
        EXPECT_TRUE(found.value()[0].is_variable);
        EXPECT_TRUE(images.has(found.value()[0].address, sizeof(int)));
        auto *const count = reinterpret_cast<int *>(found.value()[0].address);
        EXPECT_TRUE(counts.insert(count).second);
        EXPECT_EQ(++*count, **counts.begin());
    }
    images.unload(); // before the names of the files come again
}

TEST_F(image_store_test, what_is_no_library_is_not_loaded) {
    image_set images;
    auto const file = store_->add(remote::identify("no library"), "no library");
    ASSERT_TRUE(file.ok());
    for (int round = 0; round < 2; ++round) {
        auto const found = images.load(path_of(file.value()), {1, 2, 3}, {{"cos", 0}});
        ASSERT_FALSE(found.ok());
        EXPECT_EQ(found.failure().code(), OMPX_ERR_UNSUPPORTED);
        EXPECT_THAT(found.failure().message(), HasSubstr("cannot be loaded"));
    }
}

} // namespace
} // namespace diomp::offload::service
