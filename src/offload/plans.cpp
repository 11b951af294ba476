// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/plans.h"

#include "offload/plan_table.h"
#include "rma/event.h"

#include <fmt/core.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace diomp::offload {

struct plans::plan {
    int device;
    const diomp_plan_table *table;
    void *recorded; ///< libomptarget's

    plan(int on, const diomp_plan_table *with, void *what)
        : device(on), table(with), recorded(what) {}
    ~plan() { table->free(recorded); }
    plan(const plan &) = delete;
    plan &operator=(const plan &) = delete;
};

namespace {

/// The calling thread's recording.
struct recording {
    int device = -1;            ///< -1: none
    const char *call = nullptr; ///< the first other call of DiOMP meanwhile

    [[nodiscard]] bool is_active() const { return device != -1; }
};
thread_local recording t_recording;

std::string reason(std::int32_t problem, int device) {
    switch (problem) {
    case DIOMP_PLAN_MAPS:
        return fmt::format("memory of device {} was allocated or freed between begin and end",
                           device);
    case DIOMP_PLAN_TRANSFERS:
        return fmt::format("data was copied to or from device {} by other means than target "
                           "update",
                           device);
    case DIOMP_PLAN_THREADS:
        return fmt::format("another thread used device {} between begin and end", device);
    case DIOMP_PLAN_DEVICES:
        return fmt::format("a device other than {} was used between begin and end", device);
    case DIOMP_PLAN_POINTERS:
        return fmt::format("a target update of device {} includes pointers that OpenMP has "
                           "attached",
                           device);
    case DIOMP_PLAN_FAILED:
        return fmt::format("an operation on device {} failed", device);
    default:
        return fmt::format("a region on device {} has arguments that cannot be recorded", device);
    }
}

error no_plan_error() {
    return {OMPX_ERR_ARG, "this is not a plan, or it has been freed",
            "pass a plan of ompx_plan_end()"};
}

std::string remedy(std::int32_t problem) {
    switch (problem) {
    case DIOMP_PLAN_MAPS:
    case DIOMP_PLAN_TRANSFERS:
        return "map all data, also results of reductions, before the plan (target data), pass "
               "only scalars of up to 8 bytes otherwise, and copy by target update";
    case DIOMP_PLAN_THREADS:
        return "record while no other thread uses the device; regions and updates with nowait "
               "run in other threads";
    case DIOMP_PLAN_DEVICES:
        return "record one plan per device";
    case DIOMP_PLAN_POINTERS:
        return "update the members without pointers, or the arrays that they point to";
    case DIOMP_PLAN_FAILED:
        return "see the messages above";
    default:
        return "use target constructs";
    }
}

} // namespace

plans::plans(const openmp_devices &openmp, world_rank self) : openmp_(openmp), self_(self) {}
plans::~plans() = default;

bool plans::is_recording() { return t_recording.is_active(); }

void plans::note_call(const char *function) const {
    if (t_recording.is_active() && t_recording.call == nullptr &&
        !std::string_view(function).starts_with("ompx_plan_") &&
        std::string_view(function) != "ompx_rank_device" &&
        std::string_view(function) != "ompx_num_rank_devices" &&
        openmp_.plan_table()->is_in_region() == 0) {
        t_recording.call = function;
    }
}

status plans::begin(int device, void (*abandoned)()) {
    int const num = openmp_.count();
    DIOMP_TRY(openmp_devices::check(device, num, "device"));
    if (openmp_.is_host(device, num)) {
        return error(OMPX_ERR_ARG,
                     fmt::format("device {} is the host, which has no launches to record", device),
                     num == 0 || openmp_.is_disabled()
                         ? "compile with -fopenmp-targets=..., and look at OMP_TARGET_OFFLOAD"
                         : "pass the number of another device, as ompx_rank_device(0)");
    }
    diomp_plan_table const *const table = openmp_.plan_table();
    if (table == nullptr) {
        return error(OMPX_ERR_UNSUPPORTED, "the program's libomptarget records no plans",
                     "start with diomp-run, or link with diompcc, for DiOMP's libomptarget");
    }
    switch (table->begin(device, abandoned)) {
    case DIOMP_PLAN_DONE:
        t_recording = {.device = device};
        return {};
    case DIOMP_PLAN_BUSY:
        return t_recording.is_active()
                   ? error(OMPX_ERR_STATE, "this thread records a plan already",
                           "call ompx_plan_end() first")
                   : error(OMPX_ERR_STATE,
                           fmt::format("another thread records a plan on device {}", device),
                           "record one plan at a time on each device");
    default:
        return error(OMPX_ERR_UNSUPPORTED, fmt::format("device {} does not start", device),
                     "see the messages above");
    }
}

result<ompx_plan_t> plans::end() {
    if (!t_recording.is_active()) {
        return error(OMPX_ERR_STATE, "this thread records no plan",
                     "call ompx_plan_begin() first, in the same thread");
    }
    recording const ended = std::exchange(t_recording, {});
    diomp_plan_table const *const table = openmp_.plan_table();
    diomp_plan_content content{};
    void *recorded = nullptr;
    if (table == nullptr || table->end(&content, &recorded) != DIOMP_PLAN_DONE) {
        return error(OMPX_ERR_STATE, "the devices have ended", "end the recording earlier");
    }
    if (content.problem != DIOMP_PLAN_NO_PROBLEM) {
        return error(OMPX_ERR_UNSUPPORTED, reason(content.problem, ended.device),
                     remedy(content.problem));
    }
    auto made = std::make_unique<plan>(ended.device, table, recorded);
    if (ended.call != nullptr) {
        return error(OMPX_ERR_UNSUPPORTED,
                     fmt::format("{} was called between begin and end", ended.call),
                     "a plan consists of target regions and target update; regions may make calls "
                     "of DiOMP");
    }
    if (content.num_regions + content.num_updates == 0) {
        return error(OMPX_ERR_STATE,
                     fmt::format("this thread executed no region or update on device {} between "
                                 "begin and end",
                                 ended.device),
                     "check the constructs' device and if clauses");
    }
    auto const handle = table_.insert(std::move(made));
    if (!handle) {
        return error(OMPX_ERR_NOMEM, "this rank has too many plans",
                     "free those that are not needed any more");
    }
    return *handle;
}

result<plans::plan *> plans::find_to_launch(ompx_plan_t handle) const {
    plan *const found = table_.find(handle);
    if (found == nullptr) {
        return no_plan_error();
    }
    if (t_recording.is_active()) {
        return error(OMPX_ERR_STATE, "a plan cannot contain another plan",
                     "call ompx_plan_end() first");
    }
    return found;
}

status plans::outcome(int device, int outcome) const {
    switch (outcome) {
    case DIOMP_PLAN_DONE:
        return {};
    case DIOMP_PLAN_STALE:
        return error(OMPX_ERR_STATE,
                     fmt::format("memory of device {} that the plan uses has been freed or "
                                 "unmapped",
                                 device),
                     "record the plan again");
    case DIOMP_PLAN_ATTACHED:
        return error(
            OMPX_ERR_STATE,
            fmt::format("OpenMP has attached pointers in memory of device {} that the plan "
                        "updates",
                        device),
            "update the members without pointers, or the arrays that they point to");
    case DIOMP_PLAN_NONE:
        return error(OMPX_ERR_STATE, fmt::format("device {} has ended", device),
                     "launch plans before the program ends");
    default:
        return error(openmp_.is_remote(device) ? OMPX_ERR_PEER : OMPX_ERR_SYSTEM,
                     fmt::format("an operation of the plan failed on device {}", device),
                     "see the messages above");
    }
}

status plans::launch(ompx_plan_t handle) const {
    auto found = find_to_launch(handle);
    DIOMP_TRY(found);
    plan const &what = *found.value();
    return outcome(what.device, what.table->launch(what.recorded));
}

status plans::start(ompx_plan_t handle, ompx_event_t *event) const {
    auto found = find_to_launch(handle);
    DIOMP_TRY(found);
    plan const &what = *found.value();
    void *launched = nullptr;
    DIOMP_TRY(outcome(what.device, what.table->start(what.recorded, &launched)));
    *event = nullptr;
    if (launched == nullptr) {
        return {};
    }
    auto made = std::make_unique<ompx_event>();
    made->pending_transfer = std::make_shared<rma::pending_transfer>();
    rma::pending_transfer &pending = *made->pending_transfer;
    pending.peer = self_;
    pending.operation = "a plan";
    // The plan may be freed meanwhile.
    pending.poll_outcome = [this, launched, table = what.table,
                            device = what.device]() -> std::optional<status> {
        int const tested = table->test(launched);
        return tested == DIOMP_PLAN_BUSY ? std::nullopt : std::optional(outcome(device, tested));
    };
    pending.wait_outcome = [this, launched, table = what.table, device = what.device] {
        return outcome(device, table->wait(launched));
    };
    *event = made.release();
    return {};
}

void plans::forget_memory(int device, const void *begin, std::size_t nbytes) const {
    if (diomp_plan_table const *const table = openmp_.plan_table(); table != nullptr) {
        table->forget_memory(device, begin, nbytes);
    }
}

status plans::free(ompx_plan_t handle) {
    return table_.remove(handle) == nullptr ? no_plan_error() : status{};
}

} // namespace diomp::offload
