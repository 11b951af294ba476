// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "conduit/registration.h"

#include "base/log.h"
#include "base/settings.h"

#include <filesystem>
#include <unistd.h>

namespace diomp::conduit {

bool has_rdma_adapter() {
    auto const has_any = [](const char *folder) {
        std::error_code none;
        return std::filesystem::directory_iterator(folder, none) !=
               std::filesystem::directory_iterator();
    };
    return has_any("/sys/class/infiniband") || has_any("/sys/class/cxi");
}

std::size_t bytes_to_register(const window &window, const launch::job_info &job) {
    std::size_t const physical = static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) *
                                 static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    std::size_t const wanted = window.device_offset() + window.device_bytes();
    if (wanted <= physical / 2 / static_cast<std::size_t>(job.local_size)) {
        return wanted;
    }
    log(log_level::info,
        "the segment of {} is too large to be registered with a network: transfers travel as "
        "messages [remedy: set DIOMP_SEGMENT_SIZE and DIOMP_DEVICE_SEGMENT_SIZE]",
        format_size(wanted));
    return 0;
}

} // namespace diomp::conduit
