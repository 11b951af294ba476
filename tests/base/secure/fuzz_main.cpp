// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// usage: base_secure_fuzz COUNT [SEED]: so many inputs, which depend on the seed alone.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const unsigned char *data, std::size_t size);

int main(int count, char **arguments) {
    if (count < 2) {
        std::fprintf(stderr, "usage: base_secure_fuzz COUNT [SEED]\n");
        return 2;
    }
    long long const num_inputs = std::atoll(arguments[1]);
    unsigned long long const seed = count > 2 ? std::strtoull(arguments[2], nullptr, 10) : 1;
    std::mt19937_64 random(seed);
    std::vector<unsigned char> input;
    auto const begin = std::chrono::steady_clock::now();
    for (long long i = 0; i < num_inputs; ++i) {
        // Half of them have few bytes, so that few bytes of a genuine message change.
        std::uint64_t const choice = random();
        std::size_t const size = 1 + (choice >> 8) % ((choice & 1) == 0 ? 8 : 600);
        input.resize(size);
        for (std::size_t at = 0; at < size; at += sizeof(std::uint64_t)) {
            std::uint64_t const word = random();
            for (std::size_t k = 0; k < sizeof(word) && at + k < size; ++k) {
                input[at + k] = static_cast<unsigned char>(word >> (8 * k));
            }
        }
        LLVMFuzzerTestOneInput(input.data(), input.size());
    }
    std::chrono::duration<double> const time = std::chrono::steady_clock::now() - begin;
    std::printf("%lld inputs of seed %llu in %.1f s\n", num_inputs, seed, time.count());
    return 0;
}
