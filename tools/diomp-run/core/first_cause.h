// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Finds the failure that caused the other failures of a job. It gives the exit status and the only
// message.
//
// When a rank ends, its peers on a network see the connection close and fail too, often before the
// launcher can see the end itself: the kernel closes a process's descriptors before the parent can
// reap it, and hosts report independently. So failures are of two kinds:
//   own          the rank was killed, exited with a status other than 0 or without ompx_finalize,
//                aborted the job, or called a function wrongly, and had not lost a peer before
//   consequence  any failure of a rank that has reported the loss of a peer, and a timeout
//                (DIOMP_TIMEOUT)
// The rules:
//   1. Only the first failure of a rank counts.
//   2. An own failure has precedence over every consequence.
//   3. Among own failures, the one of the rank with the earliest sign of its end counts: its socket
//      was closed, or it failed. So an own failure waits for the ranks whose sockets were closed
//      before it.
//   4. Among consequences the first counts, after the ranks whose sockets are closed have ended and
//      all hosts have reported.
// The caller limits the waiting.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace diomp::run {

struct failure {
    int exit_status = 1;
    std::string message;        ///< empty: no message is printed
    bool after_timeout = false; ///< a wait has timed out; a consequence
    bool shows_stacks = false;  ///< all ranks print their stacks before the job ends
};

class first_cause {
public:
    explicit first_cause(int ranks) : ranks_(static_cast<std::size_t>(ranks)) {}

    /// Records that the rank's socket is closed: its process is ending.
    void note_closed(int rank);
    /// Records that the rank has ended, or has called ompx_finalize().
    void note_done(int rank);
    /// Records that the rank has reported the loss of a peer; nullopt: an unknown peer.
    void note_loss(int rank, std::optional<int> peer);
    void note_failure(int rank, failure what);

    [[nodiscard]] bool has_failure() const { return !failures_.empty(); }
    /// Returns the peer that `rank` has lost, if it is known.
    [[nodiscard]] std::optional<int> lost_by(int rank) const;

    enum class cause_wait {
        reports, ///< hosts have not reported yet
        exits,   ///< hosts have reported; ranks that are ending have not all ended
        none,
    };
    /// Returns the cause; nullptr if there is no failure, or if an event that the caller still
    /// waits for (`allowed_wait`) may change the result.
    [[nodiscard]] const failure *find(cause_wait allowed_wait) const;

private:
    static constexpr std::int32_t no_peer = -1;
    struct rank_state {
        std::uint32_t first_sign = 0; ///< sequence number; 0: none
        std::int32_t lost = no_peer;
        bool has_lost = false;
        bool has_failed = false;
        bool is_done = false;
    };
    struct entry {
        std::uint32_t first_sign;
        bool is_own;
        failure what;
    };
    [[nodiscard]] rank_state &at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
    void note_sign(rank_state &state);
    /// Returns whether a rank with a sign earlier than `sign` is still ending and may have an own
    /// failure.
    [[nodiscard]] bool awaits_end_before(std::uint32_t sign) const;

    std::vector<rank_state> ranks_;
    std::vector<int> closed_; ///< ranks in the order in which their sockets were closed
    std::vector<entry> failures_;
    std::uint32_t last_sign_ = 0;
};

} // namespace diomp::run
