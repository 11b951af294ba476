// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The apps' use of a BLAS, with stand-ins for the libraries (fake_blas.c).
extern "C" {
#include "common/blas.h"
}

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <dlfcn.h>
#include <string>
#include <vector>

namespace {

int polls = 0;
void poll() { ++polls; }

struct opened {
    blas *library;
    std::string reason;
};

opened open(const char *choice, const void *gpu) {
    std::array<char, 300> reason{};
    blas *const library = blas_open(choice, gpu, reason.data(), reason.size());
    return {library, reason.data()};
}

template <typename Number>
std::vector<Number> numbers(std::size_t count, int seed) {
    std::vector<Number> made(count);
    for (std::size_t i = 0; i < count; ++i) {
        made[i] = static_cast<Number>((i * 7 + static_cast<std::size_t>(seed)) % 13) - 6;
    }
    return made;
}

int call(blas *library, const blas_product &p, double /*type*/) {
    return blas_doubles(library, &p);
}
int call(blas *library, const blas_product &p, float /*type*/) { return blas_floats(library, &p); }

// All rows of c are longer than the product's: what is beyond must stay.
template <typename Number>
void check_product(blas *library, bool transpose_a, bool transpose_b, bool accumulate) {
    constexpr std::size_t rows = 5;
    constexpr std::size_t columns = 7;
    constexpr std::size_t depth = 4;
    constexpr std::size_t stride = 9;
    const auto a = numbers<Number>(stride * stride, 1);
    const auto b = numbers<Number>(stride * stride, 5);
    auto c = numbers<Number>(stride * rows, 3);
    auto expected = c;
    for (std::size_t i = 0; i < rows; ++i) {
        for (std::size_t j = 0; j < columns; ++j) {
            Number sum = accumulate ? expected[i * stride + j] : 0;
            for (std::size_t k = 0; k < depth; ++k) {
                sum += a[transpose_a ? k * stride + i : i * stride + k] *
                       b[transpose_b ? j * stride + k : k * stride + j];
            }
            expected[i * stride + j] = sum;
        }
    }
    blas_product p{};
    p.rows = rows;
    p.columns = columns;
    p.depth = depth;
    p.a = {a.data(), stride, transpose_a};
    p.b = {b.data(), stride, transpose_b};
    p.c = c.data();
    p.c_stride = stride;
    p.accumulate = accumulate;
    ASSERT_EQ(call(library, p, Number{}), 0);
    ASSERT_EQ(blas_wait(library, accumulate ? poll : nullptr), 0);
    EXPECT_EQ(c, expected) << transpose_a << transpose_b << accumulate;
}

void check_products(blas *library) {
    for (int bits = 0; bits < 8; ++bits) {
        check_product<double>(library, (bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0);
        check_product<float>(library, (bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0);
    }
}

struct gpu_case {
    const char *name;
    const char *file;
};

class gpu_blas : public testing::TestWithParam<gpu_case> {};

TEST_P(gpu_blas, products_equal_the_definition) {
    const double memory = 0;
    const opened o = open(GetParam().file, &memory);
    ASSERT_NE(o.library, nullptr) << o.reason;
    EXPECT_EQ(std::string(blas_name(o.library)).rfind(GetParam().name, 0), 0U);
    polls = 0;
    check_products(o.library);
    EXPECT_EQ(polls, 16); // the stand-in is ready at the second query
    blas_close(o.library);
}

TEST_P(gpu_blas, products_queue_up_until_the_wait) {
    const double memory = 0;
    const opened o = open(GetParam().file, &memory);
    ASSERT_NE(o.library, nullptr) << o.reason;
    const double two = 2;
    double power = 0;
    double next = 0;
    const blas_product first{1, 1, 1, {&two, 1, 0}, {&two, 1, 0}, &power, 1, 0};
    const blas_product second{1, 1, 1, {&power, 1, 0}, {&two, 1, 0}, &next, 1, 0};
    ASSERT_EQ(blas_doubles(o.library, &first), 0);
    ASSERT_EQ(blas_doubles(o.library, &second), 0);
    EXPECT_EQ(next, 0);
    ASSERT_EQ(blas_wait(o.library, nullptr), 0);
    EXPECT_EQ(next, 8);
    blas_close(o.library);
}

TEST_P(gpu_blas, a_handle_that_cannot_be_created_is_reported) {
    void *const library = dlopen(GetParam().file, RTLD_NOW);
    ASSERT_NE(library, nullptr);
    auto *const fail = static_cast<int *>(dlsym(library, "fake_fail_create"));
    const auto *const alive = static_cast<int *>(dlsym(library, "fake_alive"));
    ASSERT_NE(fail, nullptr);
    *fail = 3;
    const double memory = 0;
    const opened o = open(GetParam().file, &memory);
    *fail = 0;
    EXPECT_EQ(o.library, nullptr);
    EXPECT_NE(o.reason.find("error 3 of the call that creates a handle"), std::string::npos)
        << o.reason;
    EXPECT_EQ(*alive, 0); // all handles and streams of all tests were destroyed
}

INSTANTIATE_TEST_SUITE_P(libraries, gpu_blas,
                         testing::Values(gpu_case{"cuBLAS", FAKE_CUBLAS_FILE},
                                         gpu_case{"rocBLAS", FAKE_ROCBLAS_FILE},
                                         gpu_case{"hipBLAS", FAKE_HIPBLAS_FILE}),
                         [](const auto &info) { return std::string(info.param.name); });

TEST(host_blas, products_equal_the_definition) {
    const opened o = open(FAKE_CBLAS_FILE, nullptr);
    ASSERT_NE(o.library, nullptr) << o.reason;
    check_products(o.library);
    EXPECT_NE(std::string(blas_name(o.library)).find(FAKE_CBLAS_FILE), std::string::npos);
    blas_close(o.library);
}

TEST(host_blas, the_installed_library_equals_the_definition) {
    const opened o = open("auto", nullptr);
    if (o.library == nullptr) {
        GTEST_SKIP() << o.reason;
    }
    check_products(o.library);
    blas_close(o.library);
}

TEST(blas, off_means_none_without_a_reason) {
    const opened o = open("off", nullptr);
    EXPECT_EQ(o.library, nullptr);
    EXPECT_EQ(o.reason, "");
    EXPECT_EQ(blas_required("off"), 0);
    EXPECT_EQ(blas_required("auto"), 0);
    EXPECT_EQ(blas_required("libopenblas.so.0"), 1);
}

TEST(blas, reasons_name_the_file_or_the_function) {
    const double memory = 0;
    EXPECT_NE(open("/nowhere/libblas.so", nullptr).reason.find("/nowhere/libblas.so"),
              std::string::npos);
    EXPECT_NE(open(FAKE_LACKING_FILE, nullptr).reason.find("no function cblas_sgemm in"),
              std::string::npos);
    EXPECT_NE(open(FAKE_CBLAS_FILE, &memory).reason.find("not a BLAS for GPUs"), std::string::npos);
    EXPECT_NE(open(FAKE_CUBLAS_FILE, nullptr).reason.find("no function cblas_dgemm in"),
              std::string::npos);
}

} // namespace
