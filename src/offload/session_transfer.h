// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A transfer between GPUs of services, as the host of one of them sends it to the GPU's session.
// The sessions of the GPUs with one index on all ranks are the ranks of a job, which makes the
// transfer: rank i of it is the GPU of rank i.
#pragma once

#include "base/result.h"
#include "rma/box.h"
#include "rma/path.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace diomp::offload {

struct session_transfer {
    rma::direction dir = rma::direction::put;
    std::int32_t rank = 0;
    std::uint64_t remote = 0; ///< address in the own segment: the counterpart is meant
    std::uint64_t local = 0;
    std::vector<rma::run> runs;
};

[[nodiscard]] std::string encode(const session_transfer &of);
/// Whether an encoded call of a host is a transfer.
[[nodiscard]] bool is_session_transfer(std::string_view call);
/// Errors: OMPX_ERR_ARG.
result<session_transfer> decode_session_transfer(std::string_view bytes);

} // namespace diomp::offload
