// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// usage: fuzz_seeds FOLDER    writes valid inputs for the fuzzer there
#include "offload/remote/samples.h"

#include <filesystem>
#include <fstream>

int main(int argc, char **argv) {
    if (argc != 2) {
        return 2;
    }
    std::filesystem::path const folder(argv[1]);
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    int number = 0;
    for (diomp_test::sample const &each : diomp_test::samples()) {
        std::ofstream file(folder / std::to_string(number++), std::ios::binary);
        file << static_cast<char>(each.kind) << each.bytes;
        if (!file.flush()) {
            return 1;
        }
    }
    return 0;
}
