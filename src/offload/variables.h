// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "base/result.h"
#include "transport/types.h"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <utility>
#include <vector>

namespace diomp::messaging {
class call_service;
class engine;
} // namespace diomp::messaging

namespace diomp::memory {
class directory;
class segment;
} // namespace diomp::memory

namespace diomp::offload {

class alloc_directory;
class device_segments;
class openmp_devices;
class own_variables;
class remote_variables;
struct accelerator;
template <typename Request>
class service_queue;
struct device_ptr;
struct variable;
struct variable_reply;
struct variable_request;

/// Own copies of variables that other ranks may access. Copies on host devices are registered
/// (memory/directory.h); those on accelerators are copied by their owner, which checks requests
/// against this.
class exposed_variables {
public:
    explicit exposed_variables(memory::directory &registered) : directory_(registered) {}

    /// Grants other ranks access. One call of expose() or revoke_all() at a time.
    status expose(int device, const variable &of, const device_ptr &copy);
    /// Ends the access to all copies. Blocks until no thread holds them.
    void revoke_all();
    /// Keeps what is exposed from now on until the result is released. Any thread.
    [[nodiscard]] std::shared_lock<std::shared_mutex> hold() const {
        return std::shared_lock(held_);
    }
    struct exposed_range {
        const accelerator *on;
        std::uint64_t nbytes_left; ///< to the end of the variable
    };
    /// The exposed variable that contains an address on an own accelerator. Any thread.
    [[nodiscard]] std::optional<exposed_range> find(int device, std::uint64_t address) const;

private:
    memory::directory &directory_;
    std::vector<std::uint64_t> registered_bases_; ///< of ranges that are registered
    mutable std::shared_mutex mutex_;             ///< leaf lock; guards the next member
    std::map<std::pair<int, std::uint64_t>, exposed_range>
        on_accelerators_; ///< {device, address} to all of the variable
    mutable std::shared_mutex held_;
};

/// `declare target` variables: this rank's, other ranks', and the replies to other ranks' requests.
///
/// Answering a request may load the program's images, which takes locks of libomptarget for a
/// while, so a separate thread answers, not the message handler. Requests that arrive before the
/// program has registered its images wait until main begins. Thread-safe. Create before
/// engine.start().
class variables {
public:
    variables(const openmp_devices &openmp, device_segments &segments, alloc_directory &directory,
              memory::directory &registered, const memory::segment &host, messaging::engine &engine,
              messaging::call_service &calls);
    ~variables();

    [[nodiscard]] own_variables &own() { return *own_; }
    [[nodiscard]] remote_variables &remote() { return *remote_; }
    [[nodiscard]] const exposed_variables &exposed() const { return exposed_; }

    /// Starts answering requests; call when the program has registered its images.
    void open();
    /// Revokes other ranks' access to the copies, before they are destroyed. Waits for the request
    /// that is being answered.
    void close();
    /// Ends the thread. Later requests stay without a reply.
    void stop();

private:
    struct pending_request;

    void on_request(const transport::message &incoming);
    void serve(); ///< runs in the thread
    variable_reply make_reply(const variable_request &request);

    const alloc_directory &directory_;
    messaging::call_service &calls_;
    std::unique_ptr<own_variables> const own_;
    exposed_variables exposed_;
    transport::handler_id request_handler_;
    std::unique_ptr<remote_variables> const remote_;
    std::mutex reply_mutex_; ///< held while a request is answered; guards changes of exposed_
    bool is_closed_ = false; ///< guarded by reply_mutex_
    /// Last: its thread uses the members above.
    std::unique_ptr<service_queue<pending_request>> const pending_;
};

} // namespace diomp::offload
