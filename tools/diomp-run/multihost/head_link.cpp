// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "head_link.h"

#include <utility>

namespace diomp::run {
namespace {

/// Limit for the head to close the connection after the agent has sent its last frame.
constexpr double shutdown_limit_s = 10;

} // namespace

result<std::unique_ptr<head_link>> head_link::create(event_loop &loop, frame_events &events,
                                                     head_connection connection, double timeout_s) {
    std::unique_ptr<head_link> made(new head_link);
    auto link = frame_link::create(loop, events, std::move(connection.socket),
                                   std::move(connection.proven), timeout_s);
    DIOMP_TRY(link);
    made->link_ = link.take();
    double const interval_s = heartbeat_interval(timeout_s);
    auto alive = add_timer(loop, [self = made.get(), interval_s] {
        // A queued frame serves as a heartbeat too.
        if (self->link_->flushed()) {
            self->send(small_frame(frame_type::alive));
        }
        self->alive_->arm(interval_s);
    });
    DIOMP_TRY(alive);
    made->alive_ = alive.take();
    auto shutdown = add_timer(loop, [self = made.get()] { self->link_->close(); });
    DIOMP_TRY(shutdown);
    made->shutdown_ = shutdown.take();
    made->alive_->arm(interval_s);
    return made;
}

void head_link::send_failure(int exit_status, const std::string &message) {
    frame_writer frame(frame_type::start_failed);
    frame.number(static_cast<std::uint8_t>(exit_status));
    frame.text(message);
    send(frame.take());
}

void head_link::send_message(const std::string &line) {
    frame_writer frame(frame_type::message);
    frame.text(line);
    send(frame.take());
}

void head_link::finish(bool clean) {
    send(small_frame(frame_type::done, static_cast<std::uint8_t>(clean ? 1 : 0)));
    link_->finish_sending();
    shutdown_->arm(shutdown_limit_s);
}

} // namespace diomp::run
