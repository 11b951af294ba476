// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// diomp-run's end of the socket that connects it with one rank.
#pragma once

#include "event_loop.h"
#include "exchange.h"
#include "pipe.h"
#include "watched_process.h"

#include <deque>
#include <memory>
#include <optional>
#include <sys/types.h>
#include <vector>

namespace diomp::run {

/// Handlers of a rank's packets; called from rank_link::receive().
class link_events {
public:
    virtual ~link_events() = default;
    virtual void on_hello(int rank, pid_t pid) = 0;
    virtual void on_finalize(int rank) = 0;
    virtual void on_abort(int rank, int code) = 0;
    /// The rank aborts the job after a timeout: all ranks print their stacks first.
    virtual void on_give_up(int rank, int code) = 0;
    /// The rank has lost a peer; nullopt: an unknown one.
    virtual void on_loss(int rank, std::optional<int> peer) = 0;
    /// A rank that has joined has closed its socket, usually because its process is ending; the
    /// exit status is not known yet.
    virtual void on_closed(int rank) = 0;
    virtual void on_stacks_shown(int rank) = 0;
    /// The rank has sent an invalid packet.
    virtual void on_protocol_error(int rank, const std::string &what) = 0;
};

/// Handlers of a rank's packets for the key-value exchange. An error means an invalid packet.
class exchange_events {
public:
    virtual ~exchange_events() = default;
    virtual void on_entries(std::vector<launch::local::entry> entries) = 0;
    virtual status on_fence(int rank) = 0;
    /// The rank requests a value that a rank of another node has published.
    virtual status on_get(int rank, int owner, std::string key) = 0;
};

class rank_link {
public:
    /// `rank_end` receives the other end, with `setup_packet` and copies of the descriptors in it.
    static result<std::unique_ptr<rank_link>>
    create(event_loop &loop, link_events &events, exchange_events &exchange,
           const launch::local::rank_info_packet &setup_packet, int liveness_fd,
           unique_fd &rank_end);
    ~rank_link();
    rank_link(const rank_link &) = delete;
    rank_link &operator=(const rank_link &) = delete;

    /// Handles all packets that have arrived. Does not block.
    void receive();
    /// Queues packets; they are sent in order. Does not block.
    void send(const std::vector<shared_packet> &packets);

    /// Asks the rank to print its stacks and to go on. Does not block.
    void request_stacks();
    /// Asks for the stacks before the end of the job.
    void request_last_stacks() { stacks_request_.reset(); }

    [[nodiscard]] bool has_joined() const { return joined_pid_ >= 0; }
    /// The process that has joined, as it numbers itself; -1 before.
    [[nodiscard]] pid_t joined_pid() const { return joined_pid_; }
    /// Returns whether the rank can print its stacks on request and has not finalized.
    [[nodiscard]] bool can_show_stacks() const { return can_show_stacks_; }
    /// Returns whether it has answered request_last_stacks().
    [[nodiscard]] bool has_shown_last_stacks() const { return stacks_owed_ < 0; }

private:
    rank_link(event_loop &loop, link_events &events, exchange_events &exchange, int rank,
              unique_fd socket, unique_fd stacks_request)
        : loop_(loop), events_(events), exchange_(exchange), rank_(rank),
          socket_(std::move(socket)), stacks_request_(std::move(stacks_request)) {}
    void dispatch(std::string_view bytes);
    void report_invalid(const status &handled);
    void send_queued();
    void on_end();
    void close();

    event_loop &loop_;
    link_events &events_;
    exchange_events &exchange_;
    int rank_;
    unique_fd socket_;
    unique_fd stacks_request_; ///< a byte, or the end of file, requests stacks
    event_loop::token token_ = event_loop::token::none;
    std::deque<shared_packet> queue_;
    bool can_show_stacks_ = false;
    pid_t joined_pid_ = -1;
    int stacks_owed_ = 0; ///< requested by request_stacks(), less those that were shown
};

/// What a node keeps about one rank.
struct rank_process {
    watched_process process;
    std::unique_ptr<rank_link> link;
    bool ended = false;
};

} // namespace diomp::run
