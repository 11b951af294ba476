// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The object behind an ompx_context_t: implicit transfers that are completed apart from all others.
#pragma once

#include "base/ids.h"
#include "rma/internal/implicit_ops.h"

#include <vector>

/// One thread at a time.
struct ompx_context {
    diomp::rma::implicit_ops transfers;
    std::vector<diomp::world_rank> unflushed; ///< peers of puts whose flush has not started
};
