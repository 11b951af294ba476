// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The key-value space of a job over GASNet-EX: in a fence every rank sends the values that it has
// published to every other rank.
#pragma once

#include "base/result.h"
#include "launch/fence_limits.h"
#include "launch/gasnet/client.h"

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace diomp::launch::gasnet {

class values {
public:
    /// Registers the handlers; one object per process. No rank may send before all have registered.
    explicit values(const gasnet_client &job);
    ~values();
    values(const values &) = delete;
    values &operator=(const values &) = delete;

    status put(std::string_view key, std::string_view value);
    result<std::string> get(world_rank owner, std::string_view key);
    /// Blocks and makes progress.
    status fence();

    /// Stores a chunk of the `total` bytes that `source` published before the fence `number`.
    void receive_chunk(gex_Rank_t source, std::uint32_t number, std::size_t offset,
                       std::size_t total, std::span<const std::byte> chunk);

private:
    struct contribution {
        std::string bytes;
        std::size_t received = 0;
        bool is_complete = false;
    };
    using contributions = std::vector<contribution>; ///< by rank

    void send(gex_Rank_t peer, std::uint32_t number, const std::string &bytes) const;
    void unpack(gex_Rank_t owner, std::string_view bytes);

    const gasnet_client &job_;
    gex_Rank_t rank_;
    gex_Rank_t size_;
    fence_limits limits_;
    std::mutex mutex_; ///< not held during calls of GASNet
    std::string unpublished_;
    std::map<std::uint32_t, contributions> incoming_;                    ///< by fence
    std::atomic<gex_Rank_t> num_complete_{0};                            ///< in the current fence
    std::uint32_t number_ = 0;                                           ///< of the current fence
    std::vector<std::map<std::string, std::string, std::less<>>> known_; ///< by owner
};

} // namespace diomp::launch::gasnet
