// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Device segments of other ranks of the node, mapped into this process (device IPC), so that an own
// device copies from and to them. A segment is opened when it is first needed, and followed when
// its owner commits more.
#pragma once

#include "conduit/call.h"
#include "offload/accelerators.h"
#include "offload/segment_table.h"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

namespace diomp::offload {

/// Any thread. Create before engine.start().
class peer_segments {
public:
    peer_segments(const segment_table &own, accelerators &devices, conduit::engine &engine,
                  conduit::call_service &calls)
        : own_(own), accelerators_(devices), calls_(calls),
          question_handler_(engine.add_handler(
              [this](const conduit::message &incoming) { on_question(incoming); })) {}

    struct opened {
        std::byte *address = nullptr;    ///< in this process
        const accelerator *by = nullptr; ///< whose queues may touch it
    };
    /// Where [offset, offset + nbytes) of the segment of `owner`'s device is here, for copies from
    /// or to memory of `local` (null: host memory). Asks the owner the first time and when it has
    /// committed more. OMPX_ERR_UNSUPPORTED: no device of this process reaches it.
    result<opened> open(world_rank owner, int device, std::uint64_t offset, std::size_t nbytes,
                        const accelerator *local);

private:
    struct question;
    struct answer;
    struct part_header;
    using key = std::tuple<int, int, const accelerator *>; ///< rank, its device, local
    struct extent {
        std::uint64_t offset = 0;
        std::uint64_t nbytes = 0;
    };
    struct entry {
        const accelerator *by = nullptr;
        std::unique_ptr<device::peer_memory> memory;
        std::vector<extent> parts; ///< in the order in which the owner committed them
        bool refused = false;      ///< no device of this process reaches it
    };
    struct delivered {
        vendor made_by = vendor::none;
        device::device_uuid uuid{};
        device::shared_handle handle;
    };

    [[nodiscard]] static bool covers(const entry &of, std::uint64_t offset, std::size_t nbytes);
    result<delivered> ask(world_rank owner, int device, std::size_t num_known);
    const accelerator *choose(const delivered &of, const accelerator *local);
    status follow(entry &of, const delivered &more, const accelerator *local);
    void on_question(const conduit::message &incoming);

    const segment_table &own_;
    accelerators &accelerators_;
    conduit::call_service &calls_;
    conduit::handler_id question_handler_;
    std::mutex mutex_; ///< over the rest; held while the owner is asked, never taken in handlers
    std::map<key, entry> entries_;
    std::uint64_t num_questions_ = 0;
};

} // namespace diomp::offload
