// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which of the failures of a job is the cause of the others. It gives the exit status and the one
// message.
//
// When a rank ends, its peers on a network see the connection close and fail too, often before the
// end itself can be seen: the kernel closes a process's descriptors before its parent can reap it,
// and hosts report independently. So failures are of two kinds:
//   own          the rank was killed, exited with a status other than 0 or without ompx_finalize,
//                aborted the job, or called a function wrongly, without having lost a peer before
//   consequence  anything of a rank that has reported the loss of a peer, and a wait that was in
//                vain (DIOMP_TIMEOUT)
// The rules:
//   1. Only the first failure of a rank counts.
//   2. An own failure goes before every consequence.
//   3. Of several own failures the one counts whose rank showed the first sign of its end: its
//      socket was closed, or it failed. So an own failure waits for ranks whose sockets were closed
//      before.
//   4. Among consequences the first counts, after ranks whose sockets are closed have ended and all
//      hosts have reported what they know.
// What to wait for is bounded by the caller.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace diomp::run {

struct failure {
    int exit_status = 1;
    std::string message;       ///< empty: the user knows already
    bool in_vain = false;      ///< after a wait; a consequence
    bool shows_stacks = false; ///< of all ranks, before the job ends
};

class first_cause {
public:
    explicit first_cause(int ranks) : ranks_(static_cast<std::size_t>(ranks)) {}

    /// The rank's socket is closed: its process is ending.
    void note_closed(int rank);
    /// The rank has ended in whatever way, or will end in good order.
    void note_settled(int rank);
    /// The rank reports that it has lost a peer; no peer: any.
    void note_loss(int rank, std::optional<int> peer);
    void note_failure(int rank, failure what);

    [[nodiscard]] bool has_failure() const { return !failures_.empty(); }
    /// The rank that `rank` has lost, if it has said which.
    [[nodiscard]] std::optional<int> lost_by(int rank) const;

    enum class patience {
        reports, ///< hosts have not said yet what they know
        ends,    ///< they have; ranks that are ending are waited for
        none,
    };
    /// The cause, unless more may come that would decide otherwise.
    [[nodiscard]] const failure *find(patience left) const;

private:
    static constexpr std::int32_t no_peer = -1;
    struct rank_state {
        std::uint32_t first_sign = 0; ///< number in order; 0: none
        std::int32_t lost = no_peer;
        bool has_lost = false;
        bool has_failed = false;
        bool is_settled = false;
    };
    struct entry {
        std::uint32_t first_sign;
        bool is_own;
        failure what;
    };
    [[nodiscard]] rank_state &at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
    void note_sign(rank_state &state);
    /// A rank is ending whose first sign came before `sign`, and that may have a failure of its
    /// own.
    [[nodiscard]] bool awaits_end_before(std::uint32_t sign) const;

    std::vector<rank_state> ranks_;
    std::vector<int> closed_; ///< ranks, in order
    std::vector<entry> failures_;
    std::uint32_t last_sign_ = 0;
};

} // namespace diomp::run
