// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Exchange of blocks between the neighbours of a grid, by channels of two buffers each.
//
// A rank sends all blocks, then receives all. With one buffer a rank in exchange n would need its
// neighbours to have received the block of exchange n - 1; these are at least in exchange n - 1 and
// need the same of theirs, so the ranks that are furthest behind never wait for a buffer, and there
// is no deadlock. The second buffer lets a rank send while its neighbour still reads.
#pragma once

#include "base/ids.h"
#include "base/result.h"
#include "channels/channel_registry.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace diomp::cart {

/// A block in the caller's memory.
struct sent_block {
    const void *data = nullptr;
    std::size_t nbytes = 0;
};
struct received_block {
    void *data = nullptr;
    std::size_t nbytes = 0;
};

/// A block to each of some sides, and one from each.
struct side_blocks {
    std::span<sent_block> send;
    std::span<received_block> receive;
};

/// One thread at a time. `neighbours`: [2 * dim] before, [2 * dim + 1] after; nullopt: none. `id`
/// is equal on all ranks of the grid and unlike those of other grids that share ranks with it.
class neighbour_exchange {
public:
    neighbour_exchange(channels::channel_registry &registry, std::uint64_t id,
                       std::vector<std::optional<world_rank>> neighbours);
    neighbour_exchange(const neighbour_exchange &) = delete;
    neighbour_exchange &operator=(const neighbour_exchange &) = delete;

    [[nodiscard]] std::size_t num_neighbours() const { return sides_.size(); }
    [[nodiscard]] bool has_neighbour(std::size_t side) const {
        return sides_[side].neighbour.has_value();
    }
    /// Empty blocks for `count` sides, to be filled for exchange(); valid until the next call. Kept
    /// here, since an allocation takes longer than the exchange of a short block.
    [[nodiscard]] side_blocks empty_lists(std::size_t count);
    /// Blocks of the sides from `first` on; both lists are as long.
    /// OMPX_ERR_MISMATCH if a neighbour has sent another size.
    status exchange(std::size_t first, std::span<const sent_block> send,
                    std::span<const received_block> receive);
    /// Frees the channels.
    status close();

private:
    struct side {
        std::optional<world_rank> neighbour;
        std::unique_ptr<channels::channel_end> sender;
        std::unique_ptr<channels::channel_end> receiver;
    };

    /// Creates or replaces the ends that are missing or too small, of the sides from `first` on.
    status provide_all(std::size_t first, std::span<const sent_block> send,
                       std::span<const received_block> receive);
    status send_block(side &to, const sent_block &block);
    status receive_block(side &from, const received_block &block);

    channels::channel_registry &registry_;
    std::uint64_t id_;
    std::vector<side> sides_;
    std::vector<sent_block> send_;
    std::vector<received_block> receive_;
};

} // namespace diomp::cart
