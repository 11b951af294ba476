// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The devices of each rank as a program sees them. Arguments: for every local rank what it has to
// drive ("2", "2,3" or "none"), and after a colon its default device if that is another ("2:0").
#include "support/check.h"

#include <diomp.hpp>
#include <omp.h>
#include <string>
#include <vector>

int main(int argc, char **argv) {
    int const own = ompx_local_rank_num();
    CHECK(own + 1 < argc);
    std::string const expected = argv[own + 1];
    std::size_t const colon = expected.find(':');
    std::vector<int> const devices = diomp::rank_devices();
    std::string text;
    for (int const device : devices) {
        text += (text.empty() ? "" : ",") + std::to_string(device);
    }
    text = text.empty() ? "none" : text;
    if (text != expected.substr(0, colon)) {
        std::fprintf(stderr, "local rank %d drives %s\n", own, text.c_str());
    }
    CHECK(text == expected.substr(0, colon));
    if (devices.empty()) {
        return 0;
    }
    int const chosen =
        colon == std::string::npos ? devices.front() : std::stoi(expected.substr(colon + 1));
    CHECK(omp_get_default_device() == chosen);
    // A region without a device clause runs there: its data is on no other device.
    int mark = own;
#pragma omp target enter data map(to : mark)
    for (int device = 0; device < omp_get_num_devices(); ++device) {
        CHECK((omp_target_is_present(&mark, device) != 0) == (device == chosen));
    }
#pragma omp target exit data map(release : mark)
    return 0;
}
