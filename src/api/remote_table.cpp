// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The function table through which libomptarget's plugin uses devices of other hosts. It also works
// in programs that are not ranks: nothing here starts the runtime.
#include "offload/remote_table.h"

#include "api/internal/remote_client.h"
#include "api/internal/state.h"
#include "base/per_thread.h"
#include "offload/remote/client.h"
#include "offload/remote/queue.h"

#include <cstdlib>
#include <string>
#include <vector>

namespace {

using diomp::error;
using diomp::status;
namespace api = diomp::api;
namespace remote = diomp::offload::remote;

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
    return api::shared_remote_client()->device(static_cast<std::size_t>(number));
}
remote::queue &as_queue(void *handle) { return *static_cast<remote::queue *>(handle); }
remote::event &as_event(void *handle) { return *static_cast<remote::event *>(handle); }

template <typename Work>
int attempt(Work &&work) {
    api::remote_attempt const inside;
    if (status const ready = api::use_remote_client(); !ready) {
        return fail(ready.failure());
    }
    return outcome(work());
}

int is_requested() {
    char const *const services = std::getenv("DIOMP_REMOTE_DEVICES");
    return services != nullptr && *services != '\0' ? 1 : 0;
}

int open() {
    auto const num_devices = api::open_remote_client();
    return num_devices ? num_devices.value() : fail(num_devices.failure());
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

int used() { return api::is_remote_client_used() || api::has_remote_segment() ? 1 : 0; }

std::uint64_t allocate(int device, std::uint64_t nbytes) {
    if (status const ready = api::use_remote_client(); !ready) {
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
    return !api::has_own_remote_client() ||
                   api::shared_remote_client()->release(device_at(device), address)
               ? 0
               : fail(error(OMPX_ERR_ARG,
                            device_at(device).label() + ": no allocation begins at this address"));
}

int load(int device, const void *image, std::uint64_t nbytes, const char *const *names,
         const std::uint64_t *sizes, std::size_t num_symbols, std::uint64_t *addresses) {
    if (status const ready = api::use_remote_client(); !ready) {
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
    return api::use_remote_client()
               ? static_cast<void *>(&api::shared_remote_client()->acquire_queue(device_at(device)))
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
    if (auto failed = of.take_call_error()) {
        // The session of a GPU says it, too, and numbers its devices from 0.
        if (constexpr std::string_view in_region = "in a target region on device 0: ";
            failed->message.starts_with(in_region)) {
            failed->message.erase(0, in_region.size());
        }
        std::string const comma = failed->arguments.empty() ? "" : ", ";
        api::fail(failed->function.c_str(), failed->arguments + comma + "in a target region",
                  error(static_cast<ompx_status>(failed->code), failed->message, failed->remedy));
    }
}

int wait(void *queue) {
    remote::remote_device *used = nullptr;
    int const done = attempt([&] {
        used = &as_queue(queue).device();
        status waited = as_queue(queue).synchronize();
        api::shared_remote_client()->release_queue(as_queue(queue));
        return waited;
    });
    if (used != nullptr) {
        report_call_error(*used);
    }
    return done;
}

int query(void *queue) {
    if (status const ready = api::use_remote_client(); !ready) {
        return fail(ready.failure());
    }
    auto done = as_queue(queue).test();
    if (!done) {
        return fail(done.failure());
    }
    if (done.value()) {
        remote::remote_device &used = as_queue(queue).device();
        api::shared_remote_client()->release_queue(as_queue(queue));
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

extern "C" __attribute__((visibility("default"))) const diomp_remote_table *diomp_remote_table() {
    static constexpr struct diomp_remote_table table = {DIOMP_REMOTE_TABLE_VERSION,
                                                        is_requested,
                                                        open,
                                                        api::close_remote_client,
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
