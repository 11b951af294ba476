// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// OMPCCL on one node: collective operations over a group whose members load and store each other's
// slots.
//
// Glossary: stage: see group/group.h. chunk: the part of a call that goes through the stages
// between two meetings. part: the share of a chunk that one member reduces for all. direct: the
// buffers lie in the window, so that members read them where they are. Which algorithm runs when:
// select.h.
//
// Guarantees: a reduction combines the operands in rank order, each element once or in the same way
// everywhere, so all members get bitwise the same result. A call that members make differently is
// OMPX_ERR_MISMATCH before any buffer is written: on all members, except that in a call of up to
// 256 bytes with a root only those notice who wait for the one that differs (check_all_members:
// all). A call with an error leaves the group usable.
#pragma once

#include "collective/operators.h"
#include "group/group.h"
#include "rma/event.h"
#include "sync/call_signature.h"

#include <cstddef>
#include <cstdint>

namespace diomp::collective {

/// One collective call as the C interface takes it.
struct request {
    sync::operation what = sync::operation::barrier;
    void *dst = nullptr; ///< also the buffer of a bcast
    const void *src = nullptr;
    std::size_t amount = 0; ///< elements of `type` where there is one, else bytes
    ompx_type_t type = 0;
    ompx_op_t op = 0;
    int root = -1; ///< group rank; only for operations that have one
};

struct options {
    std::uintptr_t window_base = 0; ///< addresses in here mean the same memory in every member
    std::size_t window_span = 0;
    std::size_t stream_threshold_bytes = 0;
    bool oversubscribed = false; ///< more ranks than cores: few, large steps
    /// Every member waits for all in every call, so that all learn of a mismatch.
    bool check_all_members = false;
};

/// Any thread. One per runtime; holds the user-defined operators.
class collectives {
public:
    explicit collectives(const options &chosen);

    /// Blocks until the caller's part is done and its buffers may be reused.
    status run(group::group &members, const request &asked);
    /// Returns at once; the operation runs in its turn on the group's thread. Bad arguments are
    /// told here, all other errors by the event.
    result<ompx_event *> start(group::group &members, const request &asked);

    [[nodiscard]] user_operators &operators() { return operators_; }

private:
    status run_in_turn(group::group &members, const request &asked);

    options options_;
    user_operators operators_;
};

} // namespace diomp::collective
