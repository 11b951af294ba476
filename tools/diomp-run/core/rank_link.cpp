// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "rank_link.h"

#include "launch/local/socket.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace diomp::run {

namespace local = launch::local;

result<std::unique_ptr<rank_link>> rank_link::create(event_loop &loop, link_events &events,
                                                     exchange_events &exchange,
                                                     const local::rank_info_packet &setup_packet,
                                                     int liveness_fd, unique_fd &rank_end) {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        return system_error("socketpair", errno);
    }
    unique_fd ours(ends[0]);
    rank_end = unique_fd(ends[1]);
    auto stacks = open_pipe();
    DIOMP_TRY(stacks);
    DIOMP_TRY(stop_blocking(stacks.value().writing));
    DIOMP_TRY(local::send_first(ours.get(), local::encode_rank_info(setup_packet), liveness_fd,
                                stacks.value().reading.get()));
    std::unique_ptr<rank_link> link(
        new rank_link(loop, events, exchange, static_cast<int>(setup_packet.rank), std::move(ours),
                      std::move(stacks.value().writing)));
    auto *const self = link.get();
    auto token = loop.add(self->socket_.get(), EPOLLIN, [self](std::uint32_t ready) {
        if ((ready & EPOLLOUT) != 0) {
            self->send_queued();
        }
        self->receive();
    });
    DIOMP_TRY(token);
    self->token_ = token.value();
    return link;
}

rank_link::~rank_link() { close(); }

void rank_link::close() {
    loop_.remove(token_);
    socket_.reset();
    queue_.clear();
}

void rank_link::on_end() {
    close();
    if (has_joined()) {
        events_.on_closed(rank_);
    }
}

void rank_link::receive() {
    // A rank that ends with unread packets resets the connection. The kernel reports that before
    // the packets that the rank has sent, its ompx_abort() among them, and once.
    std::array<char, local::max_packet_bytes> buffer; // NOLINT(*-member-init): filled by recv
    while (socket_) {
        ssize_t const size = recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
        if (size > 0) {
            dispatch({buffer.data(), static_cast<std::size_t>(size)});
        } else if (size < 0 && errno == EAGAIN) {
            return;
        } else if (size == 0 || (errno != EINTR && errno != ECONNRESET)) {
            on_end(); // all copies of the other end are closed
        }
    }
}

void rank_link::report_invalid(const status &handled) {
    if (!handled) {
        events_.on_protocol_error(rank_, handled.failure().message());
    }
}

void rank_link::dispatch(std::string_view bytes) {
    packet_reader packet(bytes);
    auto const type = packet.type<local::packet_type>();
    switch (type) {
    case local::packet_type::hello:
        joined_pid_ = static_cast<pid_t>(packet.number<std::uint32_t>());
        events_.on_hello(rank_, joined_pid_);
        return;
    case local::packet_type::entries: {
        std::vector<local::entry> entries;
        if (auto const decoded = local::decode_entries(packet, entries); !decoded) {
            report_invalid(decoded);
            return;
        }
        for (auto &each : entries) {
            each.owner = static_cast<std::uint32_t>(rank_); // never the owner that the rank wrote
        }
        exchange_.on_entries(std::move(entries));
        return;
    }
    case local::packet_type::fence:
        report_invalid(exchange_.on_fence(rank_));
        return;
    case local::packet_type::get: {
        auto const owner = static_cast<int>(packet.number<std::uint32_t>());
        report_invalid(exchange_.on_get(rank_, owner, std::string(packet.text())));
        return;
    }
    case local::packet_type::finalize:
        can_show_stacks_ = false;
        events_.on_finalize(rank_);
        return;
    case local::packet_type::abort:
        events_.on_abort(rank_, static_cast<int>(packet.number<std::uint32_t>()));
        return;
    case local::packet_type::give_up:
        events_.on_give_up(rank_, static_cast<int>(packet.number<std::uint32_t>()));
        return;
    case local::packet_type::loss: {
        auto const peer = packet.number<std::uint32_t>();
        events_.on_loss(rank_, peer == local::unknown_peer ? std::nullopt
                                                           : std::optional(static_cast<int>(peer)));
        return;
    }
    case local::packet_type::stacks_ready:
        can_show_stacks_ = true;
        return;
    case local::packet_type::stacks_shown:
        --stacks_owed_;
        events_.on_stacks_shown(rank_);
        return;
    default:
        events_.on_protocol_error(
            rank_, fmt::format("packet of unknown type {}", static_cast<unsigned>(type)));
    }
}

void rank_link::request_stacks() {
    if (stacks_request_ && ::write(stacks_request_.get(), "", 1) == 1) {
        ++stacks_owed_;
    }
}

void rank_link::send(const std::vector<shared_packet> &packets) {
    queue_.insert(queue_.end(), packets.begin(), packets.end());
    send_queued();
}

void rank_link::send_queued() {
    while (socket_ && !queue_.empty()) {
        const std::string &packet = *queue_.front();
        if (::send(socket_.get(), packet.data(), packet.size(), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) {
            queue_.pop_front();
        } else if (errno == EAGAIN) {
            loop_.modify(token_, EPOLLIN | EPOLLOUT);
            return;
        } else if (errno != EINTR) {
            // The rank has closed its end. Packets that it sent before are still to be received,
            // and their end closes the link.
            queue_.clear();
        }
    }
    loop_.modify(token_, EPOLLIN);
}

} // namespace diomp::run
