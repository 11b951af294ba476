// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "launch/internal/end_watch.h"

#include "base/log.h"
#include "base/service_thread.h"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <poll.h>
#include <sys/eventfd.h>

namespace diomp::launch {

void end_watch::start(int launcher_end, world_rank self) {
    stop_ = unique_fd(::eventfd(0, EFD_CLOEXEC));
    if (launcher_end < 0 || !stop_.valid()) {
        return;
    }
    thread_ = start_service_thread("diomp-launcher", [launcher_end, stop = stop_.get(), self] {
        std::array<pollfd, 2> waited{pollfd{launcher_end, POLLIN, 0}, pollfd{stop, POLLIN, 0}};
        while (::poll(waited.data(), waited.size(), -1) < 0 && errno == EINTR) {
        }
        if (waited[0].revents != 0 && waited[1].revents == 0) {
            log(log_level::error, "the launcher of rank {} has ended, and with it the job",
                self.value());
            std::_Exit(1);
        }
    });
}

void end_watch::stop() {
    if (thread_.joinable()) {
        eventfd_write(stop_.get(), 1);
        thread_.join();
    }
}

} // namespace diomp::launch
