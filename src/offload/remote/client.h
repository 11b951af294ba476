// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Client side of remote devices: the connections to device services, and the world that this
// process and its sessions form. Queues (queue.h) run the operations.
#pragma once

#include "base/secure/secret.h"
#include "base/unique_fd.h"
#include "offload/remote/device.h"
#include "offload/remote/observer.h"
#include "offload/remote/world.h"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace diomp::launch {
class launcher;
}

namespace diomp::offload::remote {

class queue;
class client_queues;
class shared_slots;
class started_transfers;
struct world_terms;

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

/// The connections of this process to device services. Any thread.
class client {
public:
    struct options {
        std::vector<service_address> services;
        secure::secret token = secure::secret::random();
        double connect_timeout_s = 10; ///< limit for the reply of a service
        double timeout_s = 60;         ///< limit for each step of the start of sessions
        double dead_peer_timeout_s = 30;
        std::string network = "auto";               ///< tcp, ucx; otherwise chosen
        bool encrypts_data = false;                 ///< DIOMP_ENCRYPT=all
        std::string network_device_memory = "auto"; ///< DIOMP_NETWORK_DEVICE_MEMORY
        std::size_t split_threshold_bytes = 0;      ///< 0: chosen by the client
        bool defers_regions = true;                 ///< deferred_work.h
        client_observer *observer = nullptr;        ///< outlives the client
        /// The job whose ranks form one world with the devices of all of them, each in connect().
        struct job_membership {
            launch::launcher *launcher = nullptr; ///< used in connect() only; null: no job
            std::string timeout = "0";            ///< DIOMP_TIMEOUT, of calls in regions
            int node_size = 0;                    ///< world_options::node_size
            std::size_t gpu_segment_bytes = 0;    ///< DIOMP_DEVICE_SEGMENT_SIZE; 0: chosen
        };
        job_membership job;
    };

    /// Connects to all services and builds the world with their sessions. Blocks. With a job it is
    /// collective: a rank whose services cannot be reached joins without devices, and failure()
    /// says why.
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
    /// Why there are no devices; nullopt: none has failed.
    [[nodiscard]] const std::optional<error> &failure() const { return facts_.failure; }
    /// nullptr: the rank is not a device of this client.
    [[nodiscard]] remote_device *device_of(world_rank rank);
    /// Sizes of the devices' segments, equal in the world.
    struct segment_sizes {
        std::size_t of_processor = 0; ///< in the slot; 0: a device has no memory there
        std::size_t of_gpu = 0;       ///< outside the slot
    };
    [[nodiscard]] const segment_sizes &segments() const { return facts_.segments; }
    /// Whether the devices of all ranks of the job are in one world with those of this client.
    [[nodiscard]] bool is_of_job() const { return facts_.is_of_job; }
    /// Whether the sessions of the devices with this index of all ranks have a common runtime.
    [[nodiscard]] bool has_runtime(int index) const { return index < facts_.num_speaking; }
    [[nodiscard]] world &ranks() { return *world_; }
    /// Memory of sessions, of any rank, that this process loads and stores.
    [[nodiscard]] const shared_slots &slots() const { return *slots_; }
    [[nodiscard]] std::size_t split_threshold_bytes() const { return facts_.split_threshold_bytes; }
    /// nullptr: there is no observer.
    [[nodiscard]] client_observer *observer() const { return observer_; }

    /// Frees an allocation. If much of the device's memory is idle afterwards, its pages are
    /// returned to the device's host without waiting. False: no allocation begins at this address.
    bool release(remote_device &on, std::uint64_t address);
    /// The non-blocking transfers of the program.
    [[nodiscard]] started_transfers &started();
    /// Waits for all deferred work of a device. An error means that deferred work was lost, which
    /// no earlier call has reported.
    status wait_for_deferred(remote_device &on);
    /// Waits for that of all devices, and for started().
    status wait_for_all();

    /// Returns a queue for exclusive use until release_queue().
    queue &acquire_queue(remote_device &on);
    void release_queue(queue &idle);

private:
    client() = default;
    status connect_to(const service_address &service, const options &chosen);
    result<world_terms> agree_on_terms(const options &chosen, const client_exchange &exchange);
    status build_world(const options &chosen);
    void receive_frames(); ///< body of the thread
    void notify_device_loss(const remote_device &lost);
    void wake_thread();

    /// Transfers up to this size travel inside the messages of their queue.
    static constexpr std::size_t default_split_bytes = 4096;

    /// Fixed once connect() has returned.
    struct connected_facts {
        std::optional<error> failure;
        bool is_of_job = false;
        int num_speaking = 0; ///< devices with a smaller index have the runtime of regions
        world_position position;
        std::vector<int> num_devices;          ///< [client]
        std::vector<std::vector<bool>> is_gpu; ///< [client][device]
        segment_sizes segments;
        std::size_t split_threshold_bytes = default_split_bytes;
    };
    connected_facts facts_;
    std::vector<std::unique_ptr<remote_device>> devices_;
    std::unique_ptr<client_queues> queues_;
    std::unique_ptr<world> world_;
    std::unique_ptr<shared_slots> slots_;
    client_observer *observer_ = nullptr;
    std::atomic<bool> closing_{false};  ///< the sessions have been sent frame::stop
    std::atomic<bool> stopping_{false}; ///< the thread must end
    unique_fd wake_;
    std::thread thread_;
};

} // namespace diomp::offload::remote
