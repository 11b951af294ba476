// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The devices of other hosts as this process uses them: connections to services, the world that
// they form with it, and memory of each device. Queues (queue.h) do the work.
#pragma once

#include "base/secure/secret.h"
#include "offload/remote/device_memory.h"
#include "offload/remote/observer.h"
#include "offload/remote/posted.h"
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

/// Where services are: "host[:port][@first][*count]", separated by commas. `count` devices of the
/// service from number `first` on; without a count all from there.
struct service_address {
    std::string host;
    int port = default_port;
    int first = 0;
    int count = 0; ///< 0: all that follow
    bool operator==(const service_address &) const = default;
};
result<std::vector<service_address>> parse_services(const std::string &text);

/// One device of a service. Any thread.
class remote_device {
public:
    remote_device(control_link link, offer offered, std::string service, world_rank rank);

    [[nodiscard]] const offer &description() const { return offer_; }
    [[nodiscard]] world_rank rank() const { return rank_; }
    /// Among the client's devices.
    [[nodiscard]] std::size_t index() const { return rank_.index() - 1; }
    /// "device 2 of hosta": for messages.
    [[nodiscard]] const std::string &label() const { return label_; }
    [[nodiscard]] control_link &link() { return link_; }
    [[nodiscard]] posted_work &posted() { return posted_; }

    /// Memory of the device. OMPX_ERR_NOMEM. Blocks where its session has to be asked.
    result<std::uint64_t> allocate(std::size_t nbytes);
    /// Memory that puts and gets reach.
    [[nodiscard]] device_memory &slot() { return slot_; }
    /// False: nothing begins there.
    bool release(std::uint64_t address);
    /// OMPX_ERR_RANGE unless the range lies in memory that has been allocated, or can be in a
    /// variable of an image. The session looks again.
    status check(std::uint64_t address, std::size_t nbytes);
    /// In the device's slot: puts and gets reach it.
    [[nodiscard]] bool is_segment(std::uint64_t address) const { return slot_.has(address); }
    /// In an allocation or a variable outside of the slot which the network reaches all the same.
    [[nodiscard]] bool is_straight(std::uint64_t address, std::size_t nbytes) const;

    /// The addresses of the symbols, 0 for those that the image has not. Blocks.
    result<std::vector<std::uint64_t>> load(std::string_view image,
                                            const std::vector<symbol> &symbols);

    /// Why nothing works any more; "" while it does.
    [[nodiscard]] std::string failure() const;
    [[nodiscard]] bool has_failed() const { return failed_.load(std::memory_order_acquire); }
    void fail(std::string why);
    /// The network says that the device is gone. Its service may know more, and gets a moment to
    /// tell: then this fails.
    void suspect(std::string why);
    /// Waits for what follows a suspicion, if there is one. The failure, or "".
    std::string explain_loss();
    /// Bytes of standard output (0) and standard error (1) that have been written here.
    [[nodiscard]] std::uint64_t output_bytes(std::size_t stream) const {
        return output_bytes_[stream].load(std::memory_order_acquire);
    }

private:
    friend class client;
    using parts = std::map<std::uint64_t, std::size_t>; ///< outside of the slot: [address] bytes
    static bool is_in(const parts &some, std::uint64_t address, std::size_t nbytes);
    /// By the client's thread: one frame that came. False: the connection is over.
    bool take_frame(std::string_view packet);
    /// By the same thread: whether a suspicion is still open, after it has been looked at.
    bool look_at_suspicion();
    /// Notes where the symbols are. Their addresses.
    std::vector<std::uint64_t> take_places(const std::vector<symbol> &symbols,
                                           const std::vector<place> &places);
    result<std::vector<std::uint64_t>> load_unobserved(std::string_view image,
                                                       const std::vector<symbol> &symbols);
    status send(std::string_view packet); ///< an error says of which device
    result<std::uint64_t> ask_for(frame what, std::uint64_t value);
    result<std::string> wait_for_answer(std::unique_lock<std::mutex> &lock, const char *what);

    control_link link_;
    offer offer_;
    world_rank rank_;
    std::string label_;
    observer *watch_ = nullptr; ///< the client's; set before its thread starts
    device_memory slot_;
    bool is_reached_ = false; ///< memory outside of the slot, by the network; fixed at start-up
    mutable std::mutex allocated_mutex_; ///< leaf lock over the next three
    parts allocated_;
    parts symbols_;   ///< of images
    parts variables_; ///< among them
    posted_work posted_;
    std::array<std::atomic<std::uint64_t>, 2> output_bytes_{};
    std::atomic<bool> failed_{false};
    std::atomic<bool> stopped_{false};
    mutable std::mutex mutex_; ///< over the rest
    std::condition_variable answered_;
    std::string failure_;
    std::string suspicion_;
    std::chrono::steady_clock::time_point suspected_since_;
    std::deque<std::string> answers_;
    std::mutex asking_; ///< one question at a time
};

/// Any thread.
class client {
public:
    struct options {
        std::vector<service_address> services;
        secure::secret token = secure::secret::random();
        double connect_timeout_s = 10; ///< until a service has answered
        double timeout_s = 60;         ///< of start-up and of loading images
        double dead_peer_timeout_s = 30;
        std::string network = "auto";               ///< tcp, ucx; else what is best from here
        bool encrypts_data = false;                 ///< DIOMP_ENCRYPT=all
        std::string network_device_memory = "auto"; ///< DIOMP_NETWORK_DEVICE_MEMORY
        std::size_t split_threshold_bytes = 0;      ///< 0: chosen here
        bool posts_regions = true;                  ///< posted.h
        observer *watch = nullptr;                  ///< outlives the client
    };

    /// Connects to all services and meets their sessions. Blocks.
    static result<std::unique_ptr<client>> connect(const options &chosen);
    /// Ends the sessions, after all their output has come.
    ~client();
    client(const client &) = delete;
    client &operator=(const client &) = delete;

    /// For a child that is forked: drops what would keep the sessions alive when this process ends.
    /// Nothing else can be done with the copy there.
    void close_in_child();

    [[nodiscard]] std::size_t num_devices() const { return devices_.size(); }
    [[nodiscard]] remote_device &device(std::size_t index) { return *devices_[index]; }
    /// nullptr: no device of this client.
    [[nodiscard]] remote_device *device_of(world_rank rank);
    [[nodiscard]] world &ranks() { return *world_; }
    [[nodiscard]] std::size_t split_threshold_bytes() const { return split_threshold_bytes_; }
    /// nullptr: there is none.
    [[nodiscard]] observer *watch() const { return watch_; }

    /// Frees memory of a device and, if much is idle then, gives it back to the device's host,
    /// which nobody waits for. False: nothing begins there.
    bool release(remote_device &on, std::uint64_t address);
    /// Waits for all that has been posted, on a device or on all of them. An error: some of it is
    /// lost, which nobody has been told.
    status settle(remote_device &on);
    status settle();

    /// A queue that nobody else uses, until it is given back.
    queue &take_queue(remote_device &on);
    void give_back(queue &idle);

private:
    client() = default;
    status connect_to(const service_address &service, const options &chosen);
    status build_world(const options &chosen);
    void on_reply(const conduit::message &incoming);
    void listen(); ///< body of the thread
    void tell_of_loss(const remote_device &lost);
    void wake_listener();

    /// Up to this size a transfer is one packet of its queue's messages.
    static constexpr std::size_t default_split_bytes = 4096;

    std::vector<std::unique_ptr<remote_device>> devices_;
    std::unique_ptr<world> world_;
    std::size_t split_threshold_bytes_ = default_split_bytes;
    observer *watch_ = nullptr;
    std::mutex queues_mutex_;                    ///< leaf lock
    std::vector<std::unique_ptr<queue>> queues_; ///< [its number]
    std::map<const remote_device *, std::vector<queue *>> idle_;
    std::atomic<bool> closing_{false};  ///< sessions are told to stop
    std::atomic<bool> stopping_{false}; ///< so is the thread
    unique_fd wake_;
    std::thread thread_;
};

} // namespace diomp::offload::remote
