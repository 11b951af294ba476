// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The function table through which libomptarget's plugin uses devices of other hosts. It also works
// in programs that are not ranks: nothing here starts the runtime.
#include "api/internal/remote_client.h"
#include "api/internal/remote_statistics.h"
#include "api/internal/state.h"
#include "base/log.h"
#include "base/log_setup.h"
#include "base/per_thread.h"
#include "base/standard_descriptors.h"
#include "config/settings.h"
#include "offload/remote/client.h"
#include "offload/remote/queue.h"
#include "offload/remote/token.h"
#include "offload/remote_table.h"

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
struct failure_tag {};
std::string &last_failure() { return diomp::per_thread<std::string, failure_tag>::get(); }

int fail(const error &why) {
    last_failure() = why.message();
    if (!why.remedy().empty()) {
        last_failure() += " [remedy: " + why.remedy() + "]";
    }
    return -1;
}

int outcome(const status &done) { return done ? 0 : fail(done.failure()); }

remote::remote_device &device_at(int number) {
    return shared_client->device(static_cast<std::size_t>(number));
}
remote::queue &as_queue(void *handle) { return *static_cast<remote::queue *>(handle); }
remote::event &as_event(void *handle) { return *static_cast<remote::event *>(handle); }

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
    chosen.encrypts_data = settings.value().transport.encrypt == diomp::encryption::all;
    chosen.network_device_memory = settings.value().transport.network_device_memory;
    chosen.split_threshold_bytes = settings.value().remote.split_threshold_bytes;
    chosen.defers_regions = settings.value().remote.posted_regions;
    if (settings.value().messaging.timeout_s > 0) {
        chosen.job.timeout = fmt::format("{}", settings.value().messaging.timeout_s);
        chosen.dead_peer_timeout_s = settings.value().messaging.timeout_s;
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

/// Call before each use of a device.
status make_ready() {
    if (is_inherited.load(std::memory_order_acquire)) {
        DIOMP_TRY(reconnect_in_child());
    }
    if (!is_used.load(std::memory_order_relaxed)) {
        is_used.store(true, std::memory_order_relaxed);
    }
    return {};
}

/// libomptarget uses the devices.
std::atomic<bool> is_opened = false;
/// end_sessions() has been called since the client connected.
std::atomic<bool> have_sessions_ended = false;

/// Thread in which libomptarget has shut down its devices, with the state of other threads'
/// regions; 0 while they are open.
std::atomic<pid_t> closing_thread = 0;
std::atomic<int> num_inside = 0; ///< threads in attempt()

/// After the devices have been shut down, other threads inside attempt() and new ones block
/// forever.
class attempt_scope {
public:
    attempt_scope() {
        num_inside.fetch_add(1);
        block_if_closed();
    }
    ~attempt_scope() {
        block_if_closed();
        num_inside.fetch_sub(1);
    }
    attempt_scope(const attempt_scope &) = delete;
    attempt_scope &operator=(const attempt_scope &) = delete;

private:
    static void block_if_closed() {
        pid_t const closer = closing_thread.load();
        if (closer != 0 && closer != ::gettid()) [[unlikely]] {
            diomp::api::block_until_process_ends();
        }
    }
};

template <typename Work>
int attempt(Work &&work) {
    attempt_scope const inside;
    if (status const ready = make_ready(); !ready) {
        return fail(ready.failure());
    }
    return outcome(work());
}

int is_requested() {
    char const *const services = std::getenv("DIOMP_REMOTE_DEVICES");
    return services != nullptr && *services != '\0' ? 1 : 0;
}

int open() {
    diomp::fill_standard_descriptors();
    is_opened.store(true);
    if (!shared_client) { // otherwise join_remote_devices() has connected
        auto made = connect();
        if (!made) {
            return fail(made.failure());
        }
        shared_client = made.take();
        have_sessions_ended.store(false);
    } else if (shared_client->failure()) {
        return fail(*shared_client->failure());
    }
    closing_thread.store(0);
    prepare_for_forks();
    return static_cast<int>(shared_client->num_devices());
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

void close() {
    if (is_inherited.load(std::memory_order_acquire)) {
        parent_client = shared_client.release();
        return;
    }
    status const flushed = shared_client ? shared_client->wait_for_deferred() : status();
    closing_thread.store(::gettid());
    bool const is_of_running_job =
        shared_client && shared_client->is_of_job() && diomp::api::g_runtime.load() != nullptr;
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

const char *failure() { return last_failure().c_str(); }

int describe(int device, diomp_remote_device *into) {
    remote::device_description const &offered = device_at(device).description();
    *into = {offered.host.c_str(), offered.kind.c_str(), offered.name.c_str(),
             offered.machine,      offered.num_threads,  offered.memory_bytes};
    return 0;
}

const char *architecture(int device) {
    return device_at(device).description().architecture.c_str();
}

int used() {
    return is_used.load(std::memory_order_relaxed) || is_inherited.load(std::memory_order_acquire)
               ? 1
               : 0;
}

std::uint64_t allocate(int device, std::uint64_t nbytes) {
    if (status const ready = make_ready(); !ready) {
        fail(ready.failure());
        return 0;
    }
    auto address = device_at(device).allocate(nbytes);
    if (!address) {
        fail(address.failure());
        return 0;
    }
    return address.value();
}

int release(int device, std::uint64_t address) {
    // libomptarget frees cached memory at exit: after the sessions have ended in programs of older
    // compilers, and in a forked child, where the memory is the parent's.
    return !shared_client || is_inherited.load(std::memory_order_acquire) ||
                   shared_client->release(device_at(device), address)
               ? 0
               : fail(error(OMPX_ERR_ARG,
                            device_at(device).label() + ": no allocation begins at this address"));
}

int load(int device, const void *image, std::uint64_t nbytes, const char *const *names,
         const std::uint64_t *sizes, std::size_t num_symbols, std::uint64_t *addresses) {
    if (status const ready = make_ready(); !ready) {
        return fail(ready.failure());
    }
    std::vector<remote::symbol> symbols;
    symbols.reserve(num_symbols);
    for (std::size_t i = 0; i < num_symbols; ++i) {
        symbols.push_back({names[i], sizes[i]});
    }
    auto found = device_at(device).load({static_cast<const char *>(image), nbytes}, symbols);
    if (!found) {
        return fail(found.failure());
    }
    std::copy(found.value().begin(), found.value().end(), addresses);
    return 0;
}

/// On an error returns a dummy, not null: the next use of the queue reports the error.
void *queue(int device) {
    static char none;
    return make_ready() ? static_cast<void *>(&shared_client->acquire_queue(device_at(device)))
                        : &none;
}

int put(void *queue, std::uint64_t to, const void *from, std::uint64_t nbytes) {
    return attempt([&] { return as_queue(queue).put(to, from, nbytes); });
}
int get(void *queue, void *to, std::uint64_t from, std::uint64_t nbytes) {
    return attempt([&] { return as_queue(queue).get(to, from, nbytes); });
}
int copy(void *queue, int to_device, std::uint64_t to, std::uint64_t from, std::uint64_t nbytes) {
    return attempt(
        [&] { return as_queue(queue).copy(device_at(to_device).rank(), to, from, nbytes); });
}

int launch_kernel(void *queue, const diomp_remote_launch *launch) {
    remote::launch_arguments arguments;
    arguments.kernel = launch->kernel;
    arguments.version = launch->version;
    std::copy(launch->num_teams, launch->num_teams + 3, arguments.num_teams);
    std::copy(launch->thread_limit, launch->thread_limit + 3, arguments.thread_limit);
    arguments.trip_count = launch->trip_count;
    arguments.dynamic_memory_bytes = launch->dynamic_memory_bytes;
    arguments.arguments = {static_cast<const char *>(launch->arguments),
                           launch->num_arguments * sizeof(std::uint64_t)};
    return attempt([&] { return as_queue(queue).launch(arguments); });
}

/// Reports the first error of a call in regions of the device, to the thread that has waited.
void report_call_error(remote::remote_device &of) {
    if (auto const failed = of.take_call_error()) {
        diomp::api::fail(
            failed->function.c_str(), failed->arguments + ", in a target region",
            error(static_cast<ompx_status>(failed->code), failed->message, failed->remedy));
    }
}

int wait(void *queue) {
    remote::remote_device *used = nullptr;
    int const done = attempt([&] {
        used = &as_queue(queue).device();
        status waited = as_queue(queue).synchronize();
        shared_client->release_queue(as_queue(queue));
        return waited;
    });
    if (used != nullptr) {
        report_call_error(*used);
    }
    return done;
}

int query(void *queue) {
    if (status const ready = make_ready(); !ready) {
        return fail(ready.failure());
    }
    auto done = as_queue(queue).test();
    if (!done) {
        return fail(done.failure());
    }
    if (done.value()) {
        remote::remote_device &used = as_queue(queue).device();
        shared_client->release_queue(as_queue(queue));
        report_call_error(used);
    }
    return done.value() ? 1 : 0;
}

void *event() { return new remote::event; }
void forget_event(void *event) { delete &as_event(event); }
int record_event(void *event, void *queue) {
    return attempt([&] {
        as_event(event) = as_queue(queue).record();
        return status();
    });
}
int wait_event(void *event, void *queue) {
    return attempt([&] { return as_queue(queue).wait_for(as_event(event)); });
}

} // namespace

diomp::status diomp::api::connect_remote_client(launch::launcher &job) {
    auto made = connect(&job);
    DIOMP_TRY(made);
    shared_client = made.take();
    prepare_for_forks();
    return {};
}

diomp::api::remote_client_guard::remote_client_guard() {
    num_inside.fetch_add(1);
    if (closing_thread.load() == 0 && !is_inherited.load()) {
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

extern "C" __attribute__((visibility("default"))) const diomp_remote_table *diomp_remote_table() {
    static constexpr struct diomp_remote_table table = {DIOMP_REMOTE_TABLE_VERSION,
                                                        is_requested,
                                                        open,
                                                        close,
                                                        failure,
                                                        describe,
                                                        allocate,
                                                        release,
                                                        load,
                                                        queue,
                                                        put,
                                                        get,
                                                        copy,
                                                        launch_kernel,
                                                        wait,
                                                        query,
                                                        event,
                                                        forget_event,
                                                        record_event,
                                                        wait_event,
                                                        architecture,
                                                        used};
    return &table;
}
