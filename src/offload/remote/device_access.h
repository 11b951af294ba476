// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Access of a job's ranks to the memory of all remote devices of the job: between devices by the
// session of the own one, otherwise by this process. The operations of offload/remote_memory.h.
#pragma once

#include "base/result.h"
#include "offload/remote_memory.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace diomp::offload::remote {

class client;

/// The paths from this process, and from its devices, to the remote devices of rank `owner` of the
/// job; "": it has none in the address space.
std::string describe_paths(client &by, world_rank owner);

std::optional<remote_memory::range> claim_segment(client &of, int index);
void return_pages(client &of, int index, remote_memory::range pages);
bool stop_deferring(client &of, int index);
status move(client &by, rma::direction dir, std::uint64_t device_address, std::byte *here,
            std::span<const rma::run> runs, transfer_start *start);
status move_between(client &by, rma::direction dir, std::uint64_t there, int index,
                    std::uint64_t here, std::span<const rma::run> runs, transfer_start *start);
status check(client &of, int index, remote_memory::range used);
status run_call(client &by, int index, std::string_view call);
bool describe_group(client &of, int index, std::string_view group);

} // namespace diomp::offload::remote
