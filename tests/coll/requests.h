// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A trial as the class takes it.
#pragma once

#include "coll/collective.h"
#include "coll/trial.h"

namespace diomp::test {

inline coll::request request_of(const trial &t) {
    using sync::operation;
    constexpr operation operations[] = {
        operation::bcast,   operation::reduce,    operation::allreduce,      operation::gather,
        operation::scatter, operation::allgather, operation::reduce_scatter, operation::alltoall,
        operation::scan,    operation::exscan};
    coll::request asked;
    asked.what = operations[static_cast<int>(t.what)];
    asked.root = t.has_root() ? t.root : -1;
    asked.amount = t.reduces() ? t.count : t.count * t.unit();
    if (t.reduces()) {
        asked.type = t.type;
        asked.op = t.op;
    }
    return asked;
}
inline coll::request request_of(const trial &t, const trial_buffers &buffers) {
    coll::request asked = request_of(t);
    asked.dst = buffers.dst();
    asked.src = buffers.src();
    return asked;
}

} // namespace diomp::test
