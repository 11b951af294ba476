// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/standard_descriptors.h"

#include <fcntl.h>
#include <unistd.h>

namespace diomp {

void fill_standard_descriptors() {
    int fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    while (fd >= 0 && fd <= STDERR_FILENO) {
        fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    }
    if (fd >= 0) {
        ::close(fd);
    }
}

} // namespace diomp
