// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attached.h"

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <sstream>
#include <string_view>
#include <sys/epoll.h>
#include <unistd.h>

namespace diomp::deviced {

result<received_settings> receive_settings() {
    constexpr std::size_t max_bytes = std::size_t{1} << 20;
    constexpr std::string_view token_name = "DIOMP_TOKEN";
    received_settings received;
    std::string setting;
    setting.reserve(4096); // a reallocation would leave a copy of the token in freed memory
    for (std::size_t taken = 0; taken < max_bytes; ++taken) {
        char next = '\0';
        ssize_t const size = ::read(STDIN_FILENO, &next, 1);
        if (size < 0 && errno == EINTR) {
            continue;
        }
        if (size != 1) {
            break;
        }
        if (next != '\0') {
            setting += next;
        } else if (setting.empty()) {
            received.input = unique_fd(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
            unique_fd const null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
            ::dup2(null.get(), STDIN_FILENO); // sessions read from /dev/null
            return received;
        } else {
            auto const equals = setting.find('=');
            if (setting.substr(0, equals) == token_name) {
                received.token = setting.substr(equals + 1);
                secure::erase(setting);
            } else if (equals != std::string::npos) {
                ::setenv(setting.substr(0, equals).c_str(), setting.c_str() + equals + 1, 1);
            }
            setting.clear();
        }
    }
    return error(OMPX_ERR_ARG, "standard input ended before the end of the settings",
                 "--attached is for diomp-run only; its remote shell must forward standard input");
}

std::string ssh_server_address() {
    char const *const connection = std::getenv("SSH_CONNECTION");
    std::istringstream words(connection != nullptr ? connection : "");
    std::string client;
    std::string client_port;
    std::string address;
    words >> client >> client_port >> address;
    return address;
}

result<unique_fd> combine_fds(int one, int other) {
    unique_fd both(::epoll_create1(EPOLL_CLOEXEC));
    epoll_event interest{};
    interest.events = EPOLLIN | EPOLLRDHUP;
    for (int const each : {one, other}) {
        if (each >= 0 && ::epoll_ctl(both.get(), EPOLL_CTL_ADD, each, &interest) != 0) {
            return system_error("epoll_ctl", errno);
        }
    }
    return both;
}

} // namespace diomp::deviced
