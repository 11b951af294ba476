// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// libFuzzer's target: the first byte of an input is the kind of packet, the rest is a packet or
// not.
#include "offload/remote/samples.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t nbytes) {
    using namespace diomp_test;
    if (nbytes == 0) {
        return 0;
    }
    auto const kind =
        static_cast<packet_kind>(data[0] % static_cast<std::uint8_t>(packet_kind::count));
    std::string_view const bytes(reinterpret_cast<const char *>(data) + 1, nbytes - 1);
    std::string const once = read_and_write(kind, bytes);
    if (!once.empty() && read_and_write(kind, once) != once) {
        std::abort(); // what was taken means something else when it is taken again
    }
    return 0;
}
