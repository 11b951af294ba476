// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Client side of remote devices: the connections to device services, the world that this process
// and its sessions form, and the memory of each device. Queues (queue.h) run the operations.
#pragma once

#include "base/secure/secret.h"
#include "offload/remote/deferred_work.h"
#include "offload/remote/device_memory.h"
#include "offload/remote/observer.h"
#include "offload/remote/protocol.h"
#include "offload/remote/world.h"

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace diomp::offload::remote {

class client;
class queue;

/// One entry of a comma-separated list "host[:port][@first][*count]": `count` devices of the
/// service, beginning with device `first`; without a count, all devices from `first` on.
struct service_address {
    std::string host;
    int port = default_port;
    int first = 0;
    int count = 0; ///< 0: all from `first` on
    bool operator==(const service_address &) const = default;
};
result<std::vector<service_address>> parse_services(const std::string &text);

/// One device of a service. Any thread.
class remote_device {
public:
    remote_device(control_connection connection, device_description description,
                  std::string service, world_rank rank);

    [[nodiscard]] const device_description &description() const { return description_; }
    [[nodiscard]] world_rank rank() const { return rank_; }
    /// Index in the list of the client's devices.
    [[nodiscard]] std::size_t index() const { return rank_.index() - 1; }
    /// Name in messages: "remote device 2 (cpu on hosta:7653)".
    [[nodiscard]] const std::string &label() const { return label_; }
    [[nodiscard]] control_connection &connection() { return connection_; }
    [[nodiscard]] deferred_work &deferred() { return deferred_; }

    /// Allocates memory of the device. Blocks for a round trip if the session allocates. Errors:
    /// OMPX_ERR_NOMEM.
    result<std::uint64_t> allocate(std::size_t nbytes);
    /// The device's slot of the arena: puts and gets reach this memory.
    [[nodiscard]] device_memory &slot() { return slot_; }
    /// Frees an allocation. False: no allocation begins at this address.
    bool release(std::uint64_t address);
    /// OMPX_ERR_RANGE unless the range lies in allocated memory or may lie in a variable of an
    /// image. The session checks again.
    status check(std::uint64_t address, std::size_t nbytes);
    /// Whether the address is in the device's slot, which puts and gets reach.
    [[nodiscard]] bool is_segment(std::uint64_t address) const { return slot_.has(address); }
    /// Whether the range lies in an allocation or a variable outside the slot that the network can
    /// read and write.
    [[nodiscard]] bool is_zero_copy(std::uint64_t address, std::size_t nbytes) const;

    /// Loads an image. Returns the addresses of the symbols; 0 for symbols that the image does not
    /// define. Blocks.
    result<std::vector<std::uint64_t>> load(std::string_view image,
                                            const std::vector<symbol> &symbols);

    /// Why the device failed; "" while it works.
    [[nodiscard]] std::string failure() const;
    [[nodiscard]] bool has_failed() const { return failed_.load(std::memory_order_acquire); }
    void fail(std::string why);
    /// The network has reported the device as lost. The service may send a more precise reason, so
    /// the device is marked as failed only after suspicion_timeout.
    void suspect(std::string why);
    /// Waits until a pending suspicion is resolved. Returns the failure, or "".
    std::string explain_loss();
    /// Bytes of the session's standard output (0) and standard error (1) written by this process.
    [[nodiscard]] std::uint64_t output_bytes(std::size_t stream) const {
        return output_bytes_[stream].load(std::memory_order_acquire);
    }

private:
    friend class client;
    using range_map = std::map<std::uint64_t, std::size_t>; ///< outside the slot: [address] bytes
    static bool contains(const range_map &ranges, std::uint64_t address, std::size_t nbytes);
    /// Handles a received frame, in the client's thread. False: the connection has ended.
    bool handle_frame(std::string_view packet);
    /// Called by the client's thread: fails the device if the suspicion has timed out. Returns
    /// whether a suspicion is still pending.
    bool check_suspicion();
    /// Records the memory of the symbols and returns their addresses.
    std::vector<std::uint64_t> record_symbols(const std::vector<symbol> &symbols,
                                              const std::vector<location> &locations);
    result<std::vector<std::uint64_t>> load_image(std::string_view image,
                                                  const std::vector<symbol> &symbols);
    status send(std::string_view packet); ///< adds the device's label to errors
    result<std::uint64_t> call_session(frame what, std::uint64_t value);
    result<std::string> wait_for_reply(std::unique_lock<std::mutex> &lock, const char *what);

    control_connection connection_;
    device_description description_;
    world_rank rank_;
    std::string label_;
    client_observer *observer_ = nullptr; ///< the client's; set before the client's thread starts
    device_memory slot_;
    bool is_network_reachable_ = false;  ///< memory outside the slot; fixed at start-up
    mutable std::mutex allocated_mutex_; ///< leaf lock; protects the next three
    range_map allocated_;
    range_map symbols_;   ///< of images
    range_map variables_; ///< subset of symbols_
    deferred_work deferred_;
    std::array<std::atomic<std::uint64_t>, 2> output_bytes_{};
    std::atomic<bool> failed_{false};
    std::atomic<bool> stopped_{false};
    mutable std::mutex mutex_; ///< protects the rest
    std::condition_variable state_changed_;
    std::string failure_;
    std::string suspicion_;
    std::chrono::steady_clock::time_point suspected_since_;
    std::deque<std::string> replies_;
    std::mutex request_mutex_; ///< one request at a time
};

/// The connections of this process to device services. Any thread.
class client {
public:
    struct options {
        std::vector<service_address> services;
        secure::secret token = secure::secret::random();
        double connect_timeout_s = 10; ///< limit for the reply of a service
        double timeout_s = 60;         ///< limit for start-up and for loading an image
        double dead_peer_timeout_s = 30;
        std::string network = "auto";               ///< tcp, ucx; otherwise chosen
        bool encrypts_data = false;                 ///< DIOMP_ENCRYPT=all
        std::string network_device_memory = "auto"; ///< DIOMP_NETWORK_DEVICE_MEMORY
        std::size_t split_threshold_bytes = 0;      ///< 0: chosen by the client
        bool defers_regions = true;                 ///< deferred_work.h
        client_observer *observer = nullptr;        ///< outlives the client
    };

    /// Connects to all services and builds the world with their sessions. Blocks.
    static result<std::unique_ptr<client>> connect(const options &chosen);
    /// Ends the sessions after their output has been received.
    ~client();
    client(const client &) = delete;
    client &operator=(const client &) = delete;

    /// Call in a forked child: closes the copies of the connections, which would keep the sessions
    /// alive after the parent ends. The child's copy of the client must not be used otherwise.
    void close_in_child();

    [[nodiscard]] std::size_t num_devices() const { return devices_.size(); }
    [[nodiscard]] remote_device &device(std::size_t index) { return *devices_[index]; }
    /// nullptr: the rank is not a device of this client.
    [[nodiscard]] remote_device *device_of(world_rank rank);
    [[nodiscard]] world &ranks() { return *world_; }
    [[nodiscard]] std::size_t split_threshold_bytes() const { return split_threshold_bytes_; }
    /// nullptr: there is no observer.
    [[nodiscard]] client_observer *observer() const { return observer_; }

    /// Frees an allocation. If much of the device's memory is idle afterwards, its pages are
    /// returned to the device's host without waiting. False: no allocation begins at this address.
    bool release(remote_device &on, std::uint64_t address);
    /// Waits for all deferred work, of one device or of all. An error means that deferred work was
    /// lost, which no earlier call has reported.
    status wait_for_deferred(remote_device &on);
    status wait_for_deferred();

    /// Returns a queue for exclusive use until release_queue().
    queue &acquire_queue(remote_device &on);
    void release_queue(queue &idle);

private:
    client() = default;
    status connect_to(const service_address &service, const options &chosen);
    status build_world(const options &chosen);
    void on_reply(const transport::message &incoming);
    void receive_frames(); ///< body of the thread
    void notify_device_loss(const remote_device &lost);
    void wake_thread();

    /// Transfers up to this size travel inside the messages of their queue.
    static constexpr std::size_t default_split_bytes = 4096;

    std::vector<std::unique_ptr<remote_device>> devices_;
    std::unique_ptr<world> world_;
    std::size_t split_threshold_bytes_ = default_split_bytes;
    client_observer *observer_ = nullptr;
    std::mutex queues_mutex_;                    ///< leaf lock
    std::vector<std::unique_ptr<queue>> queues_; ///< [queue number]
    std::map<const remote_device *, std::vector<queue *>> idle_;
    std::atomic<bool> closing_{false};  ///< the sessions have been sent frame::stop
    std::atomic<bool> stopping_{false}; ///< the thread must end
    unique_fd wake_;
    std::thread thread_;
};

} // namespace diomp::offload::remote
