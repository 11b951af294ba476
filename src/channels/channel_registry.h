// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The ends of channels of one rank: creates them, matches them with those of their partners, finds
// them by handle, frees them.
//
// Creation sends one message to the partner: key, shape and the address of the end's memory. The
// n-th such message with a key belongs to the n-th end that this rank creates with the opposite
// key. An end's memory is released when both partners have freed their ends, since the other one
// may still write to it.
#pragma once

#include "base/handle_table.h"
#include "channels/channel_end.h"
#include "transport/types.h"

#include <deque>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace diomp::channels {

/// Tags of the runtime's own channels have this bit.
inline constexpr std::uint64_t internal_tag = std::uint64_t{1} << 63;

/// Thread-safe. Create before engine.start().
class channel_registry {
public:
    explicit channel_registry(const channel_context &context);
    ~channel_registry();
    channel_registry(const channel_registry &) = delete;
    channel_registry &operator=(const channel_registry &) = delete;

    /// Creates an end; does not block. OMPX_ERR_NOMEM.
    result<std::unique_ptr<channel_end>> create(const channel_key &key, const channel_shape &shape);
    struct wanted_end {
        channel_key key;
        channel_shape shape;
    };
    /// OMPX_ERR_NOMEM unless there is memory for all of these now.
    status check_space(std::span<const wanted_end> ends);
    /// Completes the end's operations, tells the partner, and frees the end.
    status close(std::unique_ptr<channel_end> end);
    /// Frees the memory of ends whose partners have closed theirs since. Does not block.
    void release_closed();

    result<ompx_channel_t> publish(std::unique_ptr<channel_end> end);
    /// OMPX_ERR_ARG if the handle is invalid.
    result<channel_end *> find(ompx_channel_t handle) const;
    result<std::unique_ptr<channel_end>> remove(ompx_channel_t handle);

    [[nodiscard]] const channel_context &context() const { return context_; }

private:
    enum class action : std::uint32_t { create, close };
    /// To the partner.
    struct channel_message {
        action what = action::create;
        ompx_channel_end_t end = OMPX_CHANNEL_SENDER; ///< of the source
        std::uint64_t id = 0;                         ///< of the end, unique at the source
        std::uint64_t tag = 0;
        std::uint64_t nbytes = 0;
        std::uint64_t address = 0;
        std::uint32_t depth = 0;
        std::uint32_t is_closed = 0; ///< while it waits for its end
    };
    using end_id = std::pair<world_rank, std::uint64_t>;
    struct known_end {
        std::uint64_t id = 0;
        channel_end *end = nullptr;
    };

    result<std::byte *> allocate(const channel_key &key, const channel_shape &shape);
    void send(world_rank partner, const channel_message &message);
    void handle(world_rank source, const channel_message &message);
    void match(channel_end &end, const channel_message &message);
    void on_close(world_rank source, std::uint64_t id);

    channel_context context_;
    transport::handler_id handler_;
    handle_table<channel_end, ompx_channel_t, 0xd10c> table_;
    std::mutex mutex_; ///< leaf lock over everything below
    std::uint64_t next_id_ = 1;
    std::map<channel_end *, std::uint64_t> ids_;
    std::map<channel_key, std::deque<channel_end *>> unmatched_;
    std::map<channel_key, std::deque<channel_message>> early_; ///< [key of the awaited end]
    std::map<end_id, channel_end *> matched_;                  ///< [the partner's end]
    std::vector<std::unique_ptr<channel_end>> closed_;         ///< by this rank
};

} // namespace diomp::channels
