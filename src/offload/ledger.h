// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What this rank knows of other ranks' device memory: a question to the owner on first use, then
// the kept answer. An owner that frees memory somebody has asked about first makes these answers
// void: for ranks that map its slot by a generation there, which every use of an answer reads; for
// others by a message that they confirm. So a kept answer is never about memory that has since
// become something else, unless a program frees memory while others still use it.
#pragma once

#include "conduit/call.h"
#include "memory/memory.h"
#include "offload/segment_table.h"

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <shared_mutex>
#include <tuple>
#include <vector>

namespace diomp::offload {

/// How a question names an allocation of its owner.
enum class named_by : std::uint32_t {
    offset,  ///< in the segment of the device: its counterpart
    number,  ///< of an asymmetric allocation
    address, ///< as the owner sees it
};

/// An allocation of another rank.
struct remote_allocation {
    std::uint64_t base = 0; ///< as the owner sees it
    std::uint64_t nbytes = 0;
    std::uint64_t offset = 0; ///< in the device's segment
    identity what;
    std::int32_t device = 0; ///< of the owner
    /// 0: the processors of the owner's node load and store it.
    std::uint16_t on_accelerator = 0;
    /// Its kind, if the owner's network reads and writes it; else host.
    conduit::memory_kind by_network = conduit::memory_kind::host;
    std::uint8_t unused = 0;
};

/// Any thread. Create before engine.start().
class ledger {
public:
    ledger(const segment_table &own, const memory::segment &host, conduit::engine &engine,
           conduit::call_service &calls, world_rank self);

    /// OpenMP's numbers of the devices that this rank drives. Any thread, also in handlers; must
    /// not block on other ranks.
    using device_list = std::vector<int> (*)();
    /// Before the first question. Without it there are none.
    void know_own_devices(device_list list) { own_devices_.store(list, std::memory_order_release); }
    [[nodiscard]] std::vector<int> own_devices() const {
        device_list const list = own_devices_.load(std::memory_order_acquire);
        return list == nullptr ? std::vector<int>() : list();
    }

    /// The place of an own device among those that this rank drives; -1: it does not.
    [[nodiscard]] std::int32_t place_of(int device) const;
    /// The own device that another rank means by a number and by the place that its own device of
    /// that number has (-1: none): that number if it has been used here, else the one in that
    /// place.
    [[nodiscard]] int device_meant(int device, std::int32_t place) const;
    /// The own device in a place among those that this rank drives; -1: there is none.
    [[nodiscard]] int device_in(std::int32_t place) const;

    struct finding {
        std::optional<remote_allocation> what; ///< nothing: the owner has nothing there
        bool device_in_use = false;            ///< the owner has a segment on that device
        bool was_kept = false;                 ///< it is not the first use
        std::uint64_t generation = 0;          ///< for keep()
        std::uint64_t withdrawals = 0;         ///< the same
    };
    /// `device` is the owner's number. With `as_here` it is also the number of this rank's device,
    /// its i-th, that the question is about: then the owner's i-th device is meant if it has not
    /// used that number, so ranks that drive different GPUs of a node may all say their own. Waits
    /// for the owner's progress thread on first use. By offset, whatever the owner has in [key, key
    /// + nbytes) is an answer, so that an error can name it.
    result<finding> find(world_rank owner, int device, named_by way, std::uint64_t key,
                         std::size_t nbytes = 0, bool as_here = false);

    /// Keeps an answer that has been found to be right. Nothing to do if it was kept before.
    void keep(world_rank owner, int device, named_by way, std::uint64_t key, const finding &found);
    /// Drops what is kept about counterparts of own allocations at this offset, on any device.
    void forget(std::uint64_t offset);

    /// Makes all answers about an allocation void, before it is freed. Waits for ranks of other
    /// nodes that have asked about it, no others.
    status withdraw(int device, std::uint64_t offset, const device_segment::told &known_by);

    /// Of a rank whose slot is mapped here, else nullptr.
    [[nodiscard]] const std::atomic<std::uint64_t> *generation_of(world_rank owner) const;

private:
    struct question;
    struct answer;
    struct withdrawal;
    struct confirmation {};
    using key = std::tuple<int, int, named_by, std::uint64_t>; ///< rank, device, ...
    struct kept {
        remote_allocation what;
        std::uint64_t generation = 0;
    };
    /// Answers that are kept; when there are more, all are dropped.
    static constexpr std::size_t max_kept = 16384;

    void on_question(const conduit::message &incoming);
    [[nodiscard]] conduit::memory_kind kind_for_network(const device_segment &of) const;
    void on_withdrawal(const conduit::message &incoming);
    std::optional<remote_allocation> look_up(const key &wanted) const;

    const segment_table &own_;
    const memory::segment &host_;
    std::atomic<device_list> own_devices_{nullptr};
    conduit::engine &engine_;
    conduit::call_service &calls_;
    world_rank self_;
    conduit::handler_id question_handler_;
    conduit::handler_id withdrawal_handler_;
    mutable std::shared_mutex mutex_; ///< leaf lock over kept_
    std::map<key, kept> kept_;
    std::uint64_t num_withdrawals_ = 0; ///< heard of; under mutex_
};

} // namespace diomp::offload
