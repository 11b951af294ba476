// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Plans: the calls of diomp/plan.h.
#include "diomp/plan.h"

#include "api/internal/state.h"
#include "offload/offload.h"
#include "offload/plans.h"

using namespace diomp;

std::atomic<int> diomp::api::g_recordings{0};

void diomp::api::note_recorded_call(runtime::runtime &running, const char *function) {
    running.devices().plans().note_call(function);
}

namespace {

void end_recording(runtime::runtime &running) {
    api::g_recordings.fetch_sub(1, std::memory_order_relaxed);
    api::refresh_fast_view(running);
}

/// In a thread that ends while it records.
void end_abandoned() {
    api::runtime_access const here("ompx_plan_end");
    if (runtime::runtime *const running = here.running(); running != nullptr) {
        end_recording(*running);
    }
}

} // namespace

extern "C" {

int ompx_plan_begin(int device) noexcept {
    return api::call(
        "ompx_plan_begin", DIOMP_SITE, [&] { return fmt::format("device={}", device); },
        [&](runtime::runtime &running, api::call_stats &) -> status {
            DIOMP_TRY(running.devices().plans().begin(device, end_abandoned));
            api::g_recordings.fetch_add(1, std::memory_order_relaxed);
            // No call takes a path on which it would not be noted.
            api::refresh_fast_view(running);
            api::invalidate_translations();
            return {};
        });
}

int ompx_plan_end(ompx_plan_t *plan) noexcept {
    return api::call(
        "ompx_plan_end", DIOMP_SITE, [&] { return fmt::format("plan={}", fmt::ptr(plan)); },
        [&](runtime::runtime &running, api::call_stats &) -> status {
            bool const is_recording = offload::plans::is_recording();
            auto ended = running.devices().plans().end();
            if (is_recording) {
                end_recording(running);
            }
            if (plan != nullptr) {
                *plan = ended ? ended.value() : OMPX_PLAN_NONE;
            }
            DIOMP_TRY(ended);
            if (plan == nullptr) {
                DIOMP_TRY(running.devices().plans().free(ended.value()));
            }
            return api::check_pointer(plan, "plan");
        });
}

int ompx_plan_launch(ompx_plan_t plan) noexcept {
    return api::call(
        "ompx_plan_launch", DIOMP_SITE, [&] { return fmt::format("plan={}", fmt::ptr(plan)); },
        [&](runtime::runtime &running, api::call_stats &) {
            return running.devices().plans().launch(plan);
        });
}

int ompx_plan_launch_nb(ompx_plan_t plan, ompx_event_t *event) noexcept {
    return api::call(
        "ompx_plan_launch_nb", DIOMP_SITE,
        [&] { return fmt::format("plan={}, event={}", fmt::ptr(plan), fmt::ptr(event)); },
        [&](runtime::runtime &running, api::call_stats &) -> status {
            DIOMP_TRY(api::check_pointer(event, "event"));
            return running.devices().plans().start(plan, event);
        });
}

int ompx_plan_free(ompx_plan_t *plan) noexcept {
    return api::call(
        "ompx_plan_free", DIOMP_SITE, [&] { return fmt::format("plan={}", fmt::ptr(plan)); },
        [&](runtime::runtime &running, api::call_stats &) -> status {
            DIOMP_TRY(api::check_pointer(plan, "plan"));
            DIOMP_TRY(running.devices().plans().free(*plan));
            *plan = OMPX_PLAN_NONE;
            return {};
        });
}

} // extern "C"
