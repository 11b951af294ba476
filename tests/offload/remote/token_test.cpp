// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where clients and services find their token.
#include "base/secret_variable.h"
#include "offload/remote/token.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

namespace diomp::offload::remote {
namespace {

using testing::HasSubstr;

class token_file : public testing::Test {
protected:
    token_file() : folder_(testing::TempDir() + "diomp-token-" + std::to_string(::getpid())) {
        std::filesystem::create_directory(folder_);
    }
    ~token_file() override { std::filesystem::remove_all(folder_); }
    void write(const std::string &text, mode_t mode) const { write(path_, text, mode); }
    static void write(const std::string &path, const std::string &text, mode_t mode) {
        std::filesystem::remove(path);
        std::ofstream(path) << text;
        ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    }
    [[nodiscard]] auto read() const { return read_token({.file = path_.c_str()}); }
    static bool is_made_of(const result<secure::secret> &token, const char *text) {
        return token.ok() && token.value() == secure::secret::from_text(text);
    }
    std::string const folder_;
    std::string const path_ = folder_ + "/a-file";
    std::string const credential_ = folder_ + "/" + credential_name;
};

TEST_F(token_file, is_read_without_the_end_of_its_line) {
    for (char const *const text : {"secret", "secret\n", "secret\r\n"}) {
        write(text, 0600);
        EXPECT_TRUE(is_made_of(read(), "secret"));
    }
    write("two words \n", 0400);
    EXPECT_TRUE(is_made_of(read_token({.text = "", .file = path_.c_str()}), "two words "));
}

TEST_F(token_file, comes_after_the_token_itself) {
    write("of the file", 0600);
    EXPECT_TRUE(is_made_of(read_token({.text = "itself", .file = path_.c_str()}), "itself"));
    EXPECT_TRUE(is_made_of(read_token({.text = "itself", .file = "/no/such/file"}), "itself"));
}

TEST_F(token_file, that_others_can_read_is_refused) {
    for (mode_t const mode : {0644U, 0640U, 0604U, 0620U, 0601U}) {
        write("secret", mode);
        auto const token = read();
        ASSERT_FALSE(token.ok()) << mode;
        EXPECT_THAT(token.failure().message(), HasSubstr(path_));
        EXPECT_THAT(token.failure().remedy(), HasSubstr("chmod 600"));
        EXPECT_THAT(token.failure().message(), testing::Not(HasSubstr("secret")));
    }
}

TEST_F(token_file, without_a_token_is_refused) {
    for (std::string const &text : {std::string(), std::string("\n"), std::string("\r\n\n")}) {
        write(text, 0600);
        EXPECT_FALSE(read().ok());
    }
    write(std::string(max_token_bytes, 't'), 0600);
    EXPECT_TRUE(read().ok());
    write(std::string(max_token_bytes + 1, 't'), 0600);
    EXPECT_FALSE(read().ok());
}

TEST_F(token_file, must_be_there) {
    EXPECT_THAT(read_token({.file = "/no/such/file"}).failure().message(),
                HasSubstr("/no/such/file"));
    EXPECT_FALSE(read_token({}).ok());
    EXPECT_FALSE(read_token({.text = "", .file = ""}).ok());
    EXPECT_FALSE(read_token({.file = "/tmp"}).ok()); // not a file
}

TEST_F(token_file, of_systemd_counts_last) {
    token_sources from{.credentials = folder_.c_str()};
    EXPECT_THAT(read_token(from).failure().message(), HasSubstr("there is no token"));
    write(credential_, "a credential\n", 0440); // systemd's access rules look like this
    EXPECT_TRUE(is_made_of(read_token(from), "a credential"));
    write("of the file", 0600);
    from.file = path_.c_str();
    EXPECT_TRUE(is_made_of(read_token(from), "of the file"));
    write(credential_, "", 0400);
    from.file = nullptr;
    EXPECT_THAT(read_token(from).failure().message(), HasSubstr(credential_name));
}

// ---- Variables that hold a secret

TEST(secret_variable, is_gone_from_the_block_that_others_can_look_at) {
    char block[] = "DIOMP_TEST_SECRET=abcdef";
    char again[] = "DIOMP_TEST_SECRET=abcdef";
    char longer[] = "DIOMP_TEST_SECRET_2=kept";
    char *replaced[] = {longer, block, again, nullptr};
    char **const before = environ;
    environ = replaced;
    std::string const value = take_secret_variable("DIOMP_TEST_SECRET");
    bool const is_unset = std::getenv("DIOMP_TEST_SECRET") == nullptr;
    std::string const missing = take_secret_variable("DIOMP_TEST_SECRET");
    environ = before;
    EXPECT_EQ(value, "abcdef");
    EXPECT_TRUE(is_unset);
    EXPECT_EQ(missing, "");
    std::string const zeros(6, '\0');
    EXPECT_EQ(std::string(block + 18, 6), zeros);
    EXPECT_EQ(std::string(again + 18, 6), zeros);
    EXPECT_STREQ(longer, "DIOMP_TEST_SECRET_2=kept");
}

} // namespace
} // namespace diomp::offload::remote
