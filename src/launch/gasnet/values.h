// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The key-value space of a job over GASNet-EX: at a fence every rank sends what it has published to
// every other one.
#pragma once

#include "base/result.h"
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
    /// Registers the handlers; one object per process. Nobody may send before all have done so.
    explicit values(const client &job);
    ~values();
    values(const values &) = delete;
    values &operator=(const values &) = delete;

    status put(std::string_view key, std::string_view value);
    result<std::string> get(world_rank owner, std::string_view key);
    /// Blocks, making progress.
    status fence();

    /// A piece of what `source` published before the fence `number`, which is `total` bytes.
    void take(gex_Rank_t source, std::uint32_t number, std::size_t offset, std::size_t total,
              std::span<const std::byte> piece);

private:
    struct parcel {
        std::string bytes;
        std::size_t received = 0;
        bool has_come = false;
    };
    using parcels = std::vector<parcel>; ///< by rank

    void send(gex_Rank_t peer, std::uint32_t number, const std::string &bytes) const;
    void unpack(gex_Rank_t owner, std::string_view bytes);

    const client &job_;
    gex_Rank_t rank_;
    gex_Rank_t size_;
    std::mutex mutex_; ///< never held in a call of GASNet
    std::string unpublished_;
    std::map<std::uint32_t, parcels> arriving_; ///< by fence
    std::atomic<gex_Rank_t> num_complete_{0};   ///< of the fence that this rank is in
    std::uint32_t number_ = 0;                  ///< of that fence
    std::vector<std::map<std::string, std::string, std::less<>>> known_; ///< by owner
};

} // namespace diomp::launch::gasnet
