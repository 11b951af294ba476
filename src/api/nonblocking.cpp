// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Non-blocking boxes, and waits for several events.
#include "diomp/nonblocking.h"

#include "api/internal/rect.h"
#include "api/internal/state.h"
#include "messaging/engine.h"
#include "rma/event.h"
#include "rma/nonblocking_transfers.h"
#include "rma/rma.h"

#include <string>
#include <utility>

using namespace diomp;

namespace {

std::string describe_box_nb(int rank, const void *dst, const void *src, std::size_t element_size,
                            int num_dims) {
    return fmt::format("rank={}, dst={}, src={}, element_size={}, num_dims={}, ...", rank, dst, src,
                       element_size, num_dims);
}

status start_box(runtime::runtime &running, api::call_stats &stats, rma::direction dir, int rank,
                 const void *remote, void *local, const api::rect_arguments &given,
                 ompx_event_t *event) {
    auto shape = api::make_box(given);
    DIOMP_TRY(shape);
    bool const is_put = dir == rma::direction::put;
    DIOMP_TRY(api::check_box_transfer(running, rank, is_put ? remote : local,
                                      is_put ? local : remote, shape.value()));
    auto taken =
        running.transfers().start_box(dir, world_rank{rank}, remote, local, shape.value(), event);
    DIOMP_TRY(taken);
    stats = {rma::name(taken.value()), api::box_bytes(shape.value()), rank};
    return {};
}

bool is_complete(runtime::runtime &running, ompx_event &event) {
    running.transfers().nonblocking().advance(event);
    return event.is_done();
}

/// The outcome of a complete event, which is released.
status take_outcome(ompx_event_t &event) {
    status outcome = std::move(event->outcome);
    event->release_by_program();
    event = nullptr;
    return outcome;
}

/// Before the first wait, so that an error leaves all events as they are.
status check_events(const ompx_event_t *events, std::size_t count, const int *skip = nullptr) {
    DIOMP_TRY(api::check_count(count, sizeof(*events)));
    if (count > 0) {
        DIOMP_TRY(api::check_pointer(events, "events"));
    }
    for (std::size_t i = 0; i < count; ++i) {
        if (events[i] != nullptr && (skip == nullptr || skip[i] == 0)) {
            DIOMP_TRY(ompx_event::check(events[i]));
        }
    }
    return {};
}

status wait_for_all(runtime::runtime &running, ompx_event_t *events, std::size_t count) {
    for (std::size_t i = 0; i < count;
         ++i) { // starts the flushes of all puts before the first wait
        if (events[i] != nullptr) {
            running.transfers().nonblocking().advance(*events[i]);
        }
    }
    status first_failure;
    for (std::size_t i = 0; i < count; ++i) {
        if (events[i] == nullptr) {
            continue;
        }
        DIOMP_TRY(ompx_event::check(events[i])); // it may be listed twice
        DIOMP_TRY(running.transfers().nonblocking().wait(*events[i]));
        status outcome = take_outcome(events[i]);
        if (first_failure) {
            first_failure = std::move(outcome);
        }
    }
    return first_failure;
}

status wait_for_any(runtime::runtime &running, ompx_event_t *events, std::size_t count,
                    const int *skip, std::size_t &index) {
    auto const is_left_out = [&](std::size_t i) { return skip != nullptr && skip[i] != 0; };
    index = OMPX_NO_INDEX;
    std::size_t num_awaited = 0;
    for (std::size_t i = 0; i < count; ++i) {
        num_awaited += is_left_out(i) ? 0U : 1U;
    }
    if (num_awaited == 0) {
        return {};
    }
    auto const find = [&] {
        for (std::size_t i = 0; i < count && index == OMPX_NO_INDEX; ++i) {
            if (!is_left_out(i) && (events[i] == nullptr || is_complete(running, *events[i]))) {
                index = i;
            }
        }
        return index != OMPX_NO_INDEX;
    };
    auto const wait = [&] {
        return running.connection().engine().wait_for_message(
            find, [&] { return fmt::format("waiting for one of {} events", num_awaited); });
    };
    bool has_limits = false;
    for (std::size_t i = 0; i < count; ++i) {
        has_limits = has_limits || (!is_left_out(i) && events[i] != nullptr &&
                                    events[i]->pending_transfer == nullptr);
    }
    DIOMP_TRY(has_limits ? running.transfers().nonblocking().wait_for_operation(wait, find)
                         : wait());
    return events[index] == nullptr ? status{} : take_outcome(events[index]);
}

} // namespace

extern "C" {

int ompx_event_wait_all(ompx_event_t *events, size_t count) noexcept {
    return api::call(
        "ompx_event_wait_all", DIOMP_SITE, [&] { return fmt::format("count={}", count); },
        [&](runtime::runtime &running, api::call_stats &) -> status {
            DIOMP_TRY(check_events(events, count));
            return wait_for_all(running, events, count);
        });
}

int ompx_event_wait_any(ompx_event_t *events, size_t count, const int *skip,
                        size_t *index) noexcept {
    return api::call(
        "ompx_event_wait_any", DIOMP_SITE, [&] { return fmt::format("count={}", count); },
        [&](runtime::runtime &running, api::call_stats &) -> status {
            DIOMP_TRY(check_events(events, count, skip));
            DIOMP_TRY(api::check_pointer(index, "index"));
            return wait_for_any(running, events, count, skip, *index);
        });
}

int ompx_put_rect_nb(int rank, void *dst, const void *src, size_t element_size, int num_dims,
                     const size_t *volume, const size_t *dst_offsets, const size_t *src_offsets,
                     const size_t *dst_dimensions, const size_t *src_dimensions,
                     ompx_event_t *event) noexcept {
    return api::call(
        "ompx_put_rect_nb", DIOMP_SITE,
        [&] { return describe_box_nb(rank, dst, src, element_size, num_dims); },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            return start_box(running, stats, rma::direction::put, rank, dst,
                             const_cast<void *>(src),
                             {element_size, num_dims, volume, dst_offsets, src_offsets,
                              dst_dimensions, src_dimensions},
                             event);
        });
}

int ompx_get_rect_nb(void *dst, int rank, const void *src, size_t element_size, int num_dims,
                     const size_t *volume, const size_t *dst_offsets, const size_t *src_offsets,
                     const size_t *dst_dimensions, const size_t *src_dimensions,
                     ompx_event_t *event) noexcept {
    return api::call(
        "ompx_get_rect_nb", DIOMP_SITE,
        [&] { return describe_box_nb(rank, dst, src, element_size, num_dims); },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            return start_box(running, stats, rma::direction::get, rank, src, dst,
                             {element_size, num_dims, volume, src_offsets, dst_offsets,
                              src_dimensions, dst_dimensions},
                             event);
        });
}

} // extern "C"
