// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// `declare target` variables. Their copies are in the images of devices, not in segments, so no
// offset identifies them. Their position in the program does (identity.h), which is equal on all
// ranks; name and size are compared in case programs differ. A rank looks up another rank's copy
// once and caches the reply, because images stay in place until libomptarget ends; after that the
// owner rejects transfers. Copies on host devices are registered (memory/directory.h) while they
// exist; those on accelerators are copied by their owner.
//
// Answering a request may load the program's images, which takes locks of libomptarget for a while,
// so a separate thread answers, not the message handler. Requests that arrive before the program
// has registered its images wait until main begins.
#pragma once

#include "memory/directory.h"
#include "messaging/call.h"
#include "offload/internal/accelerators.h"
#include "offload/internal/alloc_directory.h"
#include "offload/internal/identity.h"
#include "offload/variable_table.h"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace diomp::offload {

/// A variable on the host.
struct variable {
    const std::byte *host = nullptr;
    std::size_t nbytes = 0;
    identity what;
    std::string name; ///< its symbol name
};

/// Another rank's copy.
struct remote_copy {
    std::uint64_t address = 0; ///< address, as the owner sees it
    std::int32_t device = 0;   ///< of the owner
    bool on_accelerator = false;
    bool is_constant = false; ///< read-only for its owner
};

/// Thread-safe; calls that query libomptarget are not allowed in handlers. Create before
/// engine.start().
class variables {
public:
    variables(alloc_directory &devices, memory::directory &registered, const memory::segment &host,
              messaging::engine &engine, messaging::call_service &calls);
    ~variables();
    variables(const variables &) = delete;
    variables &operator=(const variables &) = delete;

    /// Returns libomptarget's table; null until it has been loaded.
    using table_source = const diomp_variable_table *(*)();
    /// Locates the own copy of a variable; loads the image if necessary.
    using copy_finder = std::function<result<device_ptr>(const variable &of, int device)>;
    /// Call first.
    void attach(table_source table, copy_finder find_copy);
    /// Starts answering requests.
    void open();
    /// Revokes other ranks' access to the copies, before they are destroyed. Waits for the request
    /// that is being answered.
    void close();

    /// The variable that contains `host`.
    std::optional<variable> find(const void *host);
    /// Loads the program's images on an own device.
    status load(int device);

    /// The copy on `owner`'s device `device`, or on its device of the same index as this rank's
    /// device of that number, see alloc_directory::find. Waits for the owner on first use.
    result<remote_copy> locate_copy(world_rank owner, int device, const variable &of);

    /// Bytes from an address on an own accelerator to the end of the exposed variable that contains
    /// it; nullopt: in none.
    [[nodiscard]] std::optional<std::uint64_t> bytes_left_in(int device,
                                                             std::uint64_t address) const;

    /// Ends the thread. Later requests stay without a reply.
    void stop();

private:
    enum class outcome : std::uint32_t { found, no_variable, no_device, no_copy, closed };
    struct address_request {
        messaging::request_header header;
        identity what;
        std::uint32_t name = 0; ///< hash of the symbol name
        std::int32_t device = 0;
        std::int32_t device_index =
            -1; ///< index of the requester's device among those that it drives
    };
    struct address_reply {
        std::uint64_t address = 0;
        std::uint64_t nbytes = 0;
        outcome how = outcome::no_variable;
        std::int32_t device = 0;
        std::uint16_t on_accelerator = 0;
        std::uint16_t is_constant = 0;
    };
    struct pending_request {
        world_rank requester;
        address_request request;
    };
    using key =
        std::tuple<int, int, std::uint32_t, std::uint64_t>; ///< rank, device, module, offset

    [[nodiscard]] const diomp_variable_table *table() const {
        return table_ == nullptr ? nullptr : table_();
    }
    void refresh(const diomp_variable_table &from);
    [[nodiscard]] std::optional<variable> find_requested(const address_request &request);
    [[nodiscard]] error error_of(world_rank owner, int device, const variable &of,
                                 const address_reply &reply) const;

    // Owner side.
    void on_request(const transport::message &incoming);
    void serve(); ///< runs in the thread
    address_reply make_reply(const address_request &request);
    status expose(int device, const variable &of, const device_ptr &copy);

    alloc_directory &devices_;
    memory::directory &registered_;
    const memory::segment &host_;
    messaging::call_service &calls_;
    transport::handler_id request_handler_;
    table_source table_ = nullptr;
    copy_finder find_copy_;

    mutable std::shared_mutex mutex_; ///< leaf lock; guards the next four members
    std::uint64_t generation_ = 0;    ///< of by_address_; see variable_table.h
    std::map<std::uintptr_t, variable> by_address_;
    std::map<key, remote_copy> cache_;
    /// Exposed copies on accelerators: {device, address} to size.
    std::map<std::pair<int, std::uint64_t>, std::uint64_t> exposed_on_accelerators_;

    std::mutex reply_mutex_; ///< held while a request is answered; guards the next two members
    bool is_closed_ = false;
    std::vector<std::uint64_t>
        exposed_ranges_; ///< bases of ranges that are registered for other ranks

    std::mutex pending_mutex_; ///< leaf lock; guards the members below
    std::condition_variable pending_changed_;
    std::deque<pending_request> pending_;
    bool is_open_ = false;
    bool stopping_ = false;
    std::thread thread_;
};

} // namespace diomp::offload
