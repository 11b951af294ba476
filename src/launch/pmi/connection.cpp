// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "launch/pmi/connection.h"

#include "launch/fence_wait.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

namespace diomp::launch::pmi {
namespace {

constexpr std::size_t max_reply_bytes = 1U << 20U; // protects against an invalid length

error launcher_gone() { return {OMPX_ERR_PEER, "the PMI launcher has ended or is ending the job"}; }

/// The reply's cmd, and the number of its request if it has one (PMI-2): "kvs-get-response#1".
std::string command_of(const fields &reply) {
    const std::string *const command = find_field(reply, "cmd");
    const std::string *const number = find_field(reply, request_number);
    return (command == nullptr ? std::string() : *command) +
           (number == nullptr ? std::string() : '#' + *number);
}

/// Whether a reply is that to a query. Some servers do not return a request's number.
bool is_reply_to(std::string_view command, std::string_view expected) {
    return command == expected || expected.substr(0, expected.find('#')) == command;
}

} // namespace

result<pmi_connection> pmi_connection::adopt(int fd, const fence_limits &limits) {
    int type = 0;
    socklen_t length = sizeof type;
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) != 0 || type != SOCK_STREAM) {
        return error(
            OMPX_ERR_ARG, fmt::format("PMI_FD={} is not a launcher's socket", fd),
            "a program between the launcher and this one may have closed it; it must leave "
            "inherited descriptors open");
    }
    unique_fd socket(fd);
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) {
        return system_error("cannot set FD_CLOEXEC on the PMI launcher's socket", errno);
    }
    // The socket is also readable when a reply has arrived; this epoll reports only the end of the
    // connection.
    unique_fd watch(epoll_create1(EPOLL_CLOEXEC));
    epoll_event end{};
    end.events = EPOLLRDHUP;
    if (!watch.valid() || epoll_ctl(watch.get(), EPOLL_CTL_ADD, fd, &end) != 0) {
        return system_error("cannot watch the PMI launcher's socket", errno);
    }
    return pmi_connection(std::move(socket), std::move(watch), limits);
}

result<fields> pmi_connection::query_line(const fields &request, std::string_view expected) {
    return query(write_line(request) + '\n', expected, &pmi_connection::receive_line);
}

result<fields> pmi_connection::query_message(const fields &request, std::string_view expected) {
    return query(write_message(request), expected, &pmi_connection::receive_message);
}

result<fields> pmi_connection::query(std::string_view request, std::string_view expected,
                                     receive_function receive_reply) {
    std::vector<std::string> &outstanding = queries_->outstanding;
    std::unique_lock lock(queries_->mutex);
    queries_->changed.wait(
        lock, [&] { return std::ranges::find(outstanding, expected) == outstanding.end(); });
    outstanding.emplace_back(expected);
    status sent = send(request);
    result<fields> reply =
        sent ? wait_for_reply(lock, expected, receive_reply) : result<fields>(sent.take_failure());
    std::erase(outstanding, expected);
    queries_->changed.notify_all();
    return reply;
}

result<fields> pmi_connection::wait_for_reply(std::unique_lock<std::mutex> &lock,
                                              std::string_view expected,
                                              receive_function receive_reply) {
    std::vector<fields> &replies = queries_->replies;
    for (;;) {
        auto const found = std::ranges::find_if(
            replies, [&](const fields &each) { return is_reply_to(command_of(each), expected); });
        if (found != replies.end()) {
            fields reply = std::move(*found);
            replies.erase(found);
            return reply;
        }
        if (queries_->is_reading) {
            queries_->changed.wait(lock);
            continue;
        }
        queries_->is_reading = true;
        lock.unlock();
        auto reply = (this->*receive_reply)();
        lock.lock();
        queries_->is_reading = false;
        queries_->changed.notify_all();
        DIOMP_TRY(reply);
        std::string const command = command_of(reply.value());
        if (std::ranges::none_of(queries_->outstanding, [&](const std::string &each) {
                return is_reply_to(command, each);
            })) {
            return error(
                OMPX_ERR_SYSTEM,
                fmt::format("the PMI launcher answered '{}' instead of '{}'", command, expected),
                "another PMI version may help: set DIOMP_LAUNCH_PMI_VERSION to 1 or 2");
        }
        replies.push_back(reply.take());
    }
}

result<fields> pmi_connection::receive_line() {
    std::size_t end = buffer_.find('\n');
    while (end == std::string::npos) {
        DIOMP_TRY(receive());
        end = buffer_.find('\n');
    }
    fields reply = read_line(std::string_view(buffer_).substr(0, end));
    buffer_.erase(0, end + 1);
    return reply;
}

result<fields> pmi_connection::receive_message() {
    DIOMP_TRY(fill(length_bytes));
    auto const length = read_length(std::string_view(buffer_).substr(0, length_bytes));
    if (!length || *length > max_reply_bytes) {
        return error(OMPX_ERR_SYSTEM, "the PMI launcher sent no PMI-2 message",
                     "it may support PMI-1 only: set DIOMP_LAUNCH_PMI_VERSION=1");
    }
    DIOMP_TRY(fill(length_bytes + *length));
    fields reply = read_message(std::string_view(buffer_).substr(length_bytes, *length));
    buffer_.erase(0, length_bytes + *length);
    return reply;
}

status pmi_connection::send(std::string_view bytes) {
    while (!bytes.empty()) {
        ssize_t const sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent > 0) {
            bytes.remove_prefix(static_cast<std::size_t>(sent));
        } else if (errno == EPIPE || errno == ECONNRESET) {
            return launcher_gone();
        } else if (errno != EINTR) {
            return system_error("cannot send to the PMI launcher", errno);
        }
    }
    return {};
}

status pmi_connection::fill(std::size_t bytes) {
    while (buffer_.size() < bytes) {
        DIOMP_TRY(receive());
    }
    return {};
}

status pmi_connection::receive() {
    std::array<char, 4096> chunk{};
    fence_wait waiting(limits_);
    while (true) {
        pollfd ready{socket_.get(), POLLIN, 0};
        int const num_ready = poll(&ready, 1, waiting.due_ms());
        if (num_ready == 0) {
            DIOMP_TRY(waiting.check());
            continue;
        }
        ssize_t const size =
            num_ready < 0 ? -1 : recv(socket_.get(), chunk.data(), chunk.size(), 0);
        if (size > 0) {
            buffer_.append(chunk.data(), static_cast<std::size_t>(size));
            return {};
        }
        if (size == 0 || errno == ECONNRESET) {
            return launcher_gone();
        }
        if (errno != EINTR) {
            return system_error("cannot receive from the PMI launcher", errno);
        }
    }
}

} // namespace diomp::launch::pmi
