// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/ucx/packet_prover.h"

#include "base/secure/key_chain.h"

#include <array>
#include <cstring>

namespace diomp::transport::ucx {

std::uint64_t packet_prover::proof_of(world_rank source, std::uint16_t endpoint,
                                      world_rank target) const {
    std::array<std::int32_t, 3> const names{source.value(), endpoint, target.value()};
    std::array<unsigned char, sizeof(names)> bytes{};
    std::memcpy(bytes.data(), names.data(), sizeof(names));
    secure::key_chain chain(job_, "DiOMP UCX messages 1");
    chain.absorb(bytes);
    secure::connection_key const key = chain.derive("proof");
    std::uint64_t proof = 0;
    std::memcpy(&proof, key.data(), sizeof(proof));
    return proof;
}

} // namespace diomp::transport::ucx
