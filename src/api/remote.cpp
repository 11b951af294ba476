// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The client of this process's remote devices: its connection, forked children, and its end. It
// also works in programs that are not ranks: nothing here starts the runtime.
#include "api/internal/remote_client.h"
#include "api/internal/remote_statistics.h"
#include "api/internal/state.h"
#include "base/log.h"
#include "base/log_setup.h"
#include "base/standard_descriptors.h"
#include "config/settings.h"
#include "offload/remote/client.h"
#include "offload/remote/token.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <pthread.h>
#include <string>
#include <unistd.h>
#include <vector>

namespace {

using diomp::error;
using diomp::result;
using diomp::status;
namespace remote = diomp::offload::remote;

/// Null without statistics and trace. Outlives the client. Neither is destroyed at exit, since
/// other threads may use both while the process ends.
std::unique_ptr<diomp::api::remote_statistics> &statistics_observer =
    *new std::unique_ptr<diomp::api::remote_statistics>;
std::unique_ptr<remote::client> &shared_client = *new std::unique_ptr<remote::client>;
/// Set in a forked child: `shared_client` is the parent's, without its connections and threads.
std::atomic<bool> is_inherited = false;
/// This process's memory may hold references to device memory or images.
std::atomic<bool> is_used = false;
std::mutex connecting;                   ///< serializes reconnect_in_child()
remote::client *parent_client = nullptr; ///< never destroyed

/// `job`: see client::options.
result<std::unique_ptr<remote::client>> connect(diomp::launch::launcher *job = nullptr) {
    std::vector<std::string> unknown;
    auto settings = diomp::read_settings(unknown);
    DIOMP_TRY(settings);
    diomp::set_log_if_unset(settings.value().runtime.log, "");
    remote::client::options chosen;
    auto services = remote::parse_services(settings.value().remote.devices);
    DIOMP_TRY(services);
    chosen.services = services.take();
    if (!statistics_observer) {
        statistics_observer = diomp::api::remote_statistics::make(settings.value());
    }
    chosen.observer = statistics_observer.get();
    chosen.job.launcher = job;
    auto token = remote::read_token(
        {.text = std::getenv("DIOMP_TOKEN"), .file = std::getenv("DIOMP_TOKEN_FILE")});
    DIOMP_TRY(token);
    chosen.token = token.take();
    chosen.network = settings.value().transport.network;
    bool const has_nodes =
        settings.value().transport.conduit == "auto" || settings.value().transport.conduit == "shm";
    chosen.job.node_size = has_nodes ? settings.value().transport.node_size : 1;
    chosen.job.gpu_segment_bytes = settings.value().offload.segment_size_bytes;
    chosen.encrypts_data = settings.value().transport.encrypt == diomp::encryption::all;
    chosen.network_device_memory = settings.value().transport.network_device_memory;
    chosen.split_threshold_bytes = settings.value().remote.split_threshold_bytes;
    chosen.defers_regions = settings.value().remote.posted_regions;
    if (settings.value().messaging.timeout_s > 0) {
        chosen.job.timeout = fmt::format("{}", settings.value().messaging.timeout_s);
        chosen.dead_peer_timeout_s = settings.value().messaging.timeout_s;
        chosen.timeout_s = std::max(chosen.dead_peer_timeout_s, chosen.connect_timeout_s);
    }
    return remote::client::connect(chosen);
}

void mark_inherited() {
    if (shared_client) {
        shared_client->close_in_child();
        is_inherited.store(true, std::memory_order_release);
    }
}

void prepare_for_forks() {
    static int const prepared = ::pthread_atfork(nullptr, nullptr, mark_inherited);
    if (prepared != 0) {
        diomp::log(diomp::log_level::warn, "pthread_atfork: {}", ::strerrordesc_np(prepared));
    }
}

/// Connects a forked child with sessions of its own. Errors: OMPX_ERR_STATE if the parent had used
/// a device before the fork.
status reconnect_in_child() {
    std::lock_guard const guard(connecting);
    if (!is_inherited.load(std::memory_order_acquire)) {
        return {};
    }
    if (is_used.load(std::memory_order_relaxed)) {
        return error(OMPX_ERR_STATE,
                     "this process was forked by one that had used remote devices before",
                     "use them in the child first, or execute a program there");
    }
    auto made = connect();
    DIOMP_TRY(made);
    if (made.value()->num_devices() != shared_client->num_devices()) {
        return error(OMPX_ERR_STATE,
                     "the device services offer another number of devices than before the fork");
    }
    parent_client = shared_client.release(); // its descriptions are still referenced
    shared_client = made.take();
    is_inherited.store(false, std::memory_order_release);
    return {};
}

/// libomptarget uses the devices.
std::atomic<bool> is_opened = false;
/// end_sessions() has been called since the client connected.
std::atomic<bool> have_sessions_ended = false;

/// Thread in which libomptarget has shut down its devices, with the state of other threads'
/// regions; 0 while they are open.
std::atomic<pid_t> closing_thread = 0;
std::atomic<int> num_inside = 0; ///< threads in remote_attempt or remote_client_guard

void block_if_closed() {
    pid_t const closer = closing_thread.load();
    if (closer != 0 && closer != ::gettid()) [[unlikely]] {
        diomp::api::block_until_process_ends();
    }
}

/// Headings of the devices in the table of statistics.
std::vector<std::string> labels_of_devices() {
    std::vector<std::string> labels;
    for (std::size_t i = 0; shared_client && i < shared_client->num_devices(); ++i) {
        remote::remote_device const &each = shared_client->device(i);
        labels.push_back(fmt::format(
            "{}, host {}, {}{}", each.label(), each.description().host, each.description().name,
            each.has_failed() ? "; it was lost, and with it the times of its kernels" : ""));
    }
    return labels;
}

/// Ends the sessions and reports the statistics of the devices, once.
void end_sessions() {
    if (have_sessions_ended.exchange(true)) {
        return;
    }
    std::vector<std::string> const labels = labels_of_devices();
    if (shared_client && num_inside.load() > 0) {
        shared_client->ranks().freeze(); // sessions end with this process's connections
    } else {
        shared_client.reset();
    }
    if (statistics_observer && !labels.empty()) {
        statistics_observer->finish(labels);
    }
}

} // namespace

diomp::status diomp::api::connect_remote_client(launch::launcher &job) {
    auto made = connect(&job);
    DIOMP_TRY(made);
    shared_client = made.take();
    prepare_for_forks();
    return {};
}

remote::client *diomp::api::shared_remote_client() { return shared_client.get(); }

bool diomp::api::has_own_remote_client() {
    return shared_client && !is_inherited.load(std::memory_order_acquire);
}

bool diomp::api::is_remote_client_used() {
    return is_used.load(std::memory_order_relaxed) || is_inherited.load(std::memory_order_acquire);
}

status diomp::api::use_remote_client() {
    if (is_inherited.load(std::memory_order_acquire)) {
        DIOMP_TRY(reconnect_in_child());
    }
    if (!is_used.load(std::memory_order_relaxed)) {
        is_used.store(true, std::memory_order_relaxed);
    }
    return {};
}

diomp::api::remote_attempt::remote_attempt() {
    num_inside.fetch_add(1);
    block_if_closed();
}

diomp::api::remote_attempt::~remote_attempt() {
    block_if_closed();
    num_inside.fetch_sub(1);
}

result<int> diomp::api::open_remote_client() {
    fill_standard_descriptors();
    is_opened.store(true);
    if (!shared_client) { // otherwise join_remote_devices() has connected
        auto made = connect();
        DIOMP_TRY(made);
        shared_client = made.take();
        have_sessions_ended.store(false);
    } else if (shared_client->failure()) {
        error const &failed = *shared_client->failure();
        return error(failed.code(), failed.message(), failed.remedy());
    }
    closing_thread.store(0);
    prepare_for_forks();
    return static_cast<int>(shared_client->num_devices());
}

void diomp::api::close_remote_client() {
    if (is_inherited.load(std::memory_order_acquire)) {
        parent_client = shared_client.release();
        return;
    }
    status const flushed = shared_client ? shared_client->wait_for_all() : status();
    closing_thread.store(::gettid());
    bool const is_of_running_job =
        shared_client && shared_client->is_of_job() && g_runtime.load() != nullptr;
    // Regions of other ranks may need the sessions until leave_remote_devices().
    if (!is_of_running_job) {
        end_sessions();
    }
    if (!flushed) {
        // Deferred regions failed and the program can no longer get the error.
        std::fprintf(stderr, "diomp: error: %s\n", flushed.failure().message().c_str());
        std::fflush(nullptr);
        std::_Exit(EXIT_FAILURE);
    }
}

diomp::api::remote_client_guard::remote_client_guard(scope of) {
    num_inside.fetch_add(1);
    bool const is_open =
        of == scope::job ? !have_sessions_ended.load() : closing_thread.load() == 0;
    if (is_open && !is_inherited.load()) {
        client_ = shared_client.get();
    }
}

diomp::api::remote_client_guard::~remote_client_guard() { num_inside.fetch_sub(1); }

void diomp::api::leave_remote_devices() {
    bool const is_in_use = is_opened.load() && closing_thread.load() == 0;
    if (!is_in_use && shared_client && !is_inherited.load()) {
        end_sessions();
    }
}

void diomp::api::hand_over_remote_trace(runtime::runtime &running) {
    if (statistics_observer) {
        statistics_observer->hand_over(running);
    }
}
