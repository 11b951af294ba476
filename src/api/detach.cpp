// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "api/internal/detach.h"

#include "api/internal/omp_runtime.h"
#include "api/internal/state.h"
#include "diomp/types.h"
#include "messaging/engine.h"
#include "rma/event.h"
#include "rma/nonblocking_transfers.h"
#include "rma/rma.h"

#include <utility>

namespace diomp::api {

std::function<void(status)> fulfil_later(const char *function, std::uintptr_t task) {
    return [function, task](status outcome) {
        if (!outcome) {
            fail_later(function, outcome.failure());
            return;
        }
        fulfill_event(task);
    };
}

void fulfil_after(runtime::runtime &running, ompx_event *given, const char *function,
                  std::uintptr_t task) {
    auto const next = fulfil_later(function, task);
    if (given == nullptr) {
        next(status{});
    } else if (given->pending_transfer == nullptr) {
        given->then(next);
    } else {
        auto const is_over = [&running, given] {
            running.transfers().nonblocking().advance(*given);
            return given->is_done();
        };
        auto const finish = [given, next] {
            next(std::move(given->outcome));
            given->release_by_program();
        };
        if (running.connection().engine().options().progress_thread) {
            running.connection().engine().call_when(is_over, finish);
            return;
        }
        // No thread would poll the transfer while the program waits in OpenMP.
        status const waited = running.connection().engine().wait_for_message(
            is_over, [given] { return given->describe(); });
        if (!waited) {
            fail_later(function, waited.failure());
            return;
        }
        finish();
    }
}

} // namespace diomp::api

extern "C" {

OMPX_API_ int ompx_event_detach(ompx_event_t *event, std::uintptr_t task) noexcept {
    using namespace diomp;
    return api::call(
        "ompx_event_detach", DIOMP_SITE, [&] { return fmt::format("event={}", fmt::ptr(event)); },
        [&](runtime::runtime &running, api::call_stats &) -> status {
            DIOMP_TRY(api::check_pointer(event, "event"));
            DIOMP_TRY(api::can_fulfill());
            if (*event != nullptr) {
                DIOMP_TRY(ompx_event::check(*event));
            }
            api::fulfil_after(running, std::exchange(*event, nullptr), "ompx_event_detach", task);
            return {};
        });
}

} // extern "C"
