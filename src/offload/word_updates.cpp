// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/internal/word_updates.h"

#include "base/log.h"
#include "messaging/call.h"
#include "messaging/engine.h"
#include "offload/device_segment.h"
#include "offload/internal/segment_memory.h"

#include <fmt/core.h>

#include <cstring>
#include <utility>

namespace diomp::offload {
namespace {

/// Updates of a rank that wait for their owners; each is some hundred bytes on both sides.
constexpr int max_started = 1024;

} // namespace

word_updates::word_updates(const segment_table &own, messaging::engine &engine,
                           messaging::call_service &calls)
    : own_(own), engine_(engine), calls_(calls),
      handler_(
          engine.add_handler([this](const transport::message &incoming) { on_request(incoming); })),
      jobs_("diomp-updates", true, [this] { serve(); }) {}

word_updates::~word_updates() = default;

// ---- requester ----

error word_updates::failure_of(const remote_word &what, int code) {
    int const rank = what.rank.value();
    switch (code) {
    case OMPX_ERR_ADDRESS:
        return {OMPX_ERR_ADDRESS,
                fmt::format("rank {} has no allocation with this word on its device", rank),
                "let all ranks allocate it, and call a barrier after the last access"};
    case OMPX_ERR_UNSUPPORTED:
        return {OMPX_ERR_UNSUPPORTED,
                fmt::format("the runtime of rank {} has no kernel for its GPU, and a processor "
                            "cannot update a word there so that it is atomic for the GPU",
                            rank),
                "build the runtime with DIOMP_GPU_KERNELS=ON, place the word in global host "
                "memory, or give each sender a signal of its own and use OMPX_SIGNAL_SET"};
    default:
        return {static_cast<ompx_status>(code),
                fmt::format("rank {} could not update a word of its GPU", rank),
                fmt::format("see the messages of rank {}", rank)};
    }
}

result<std::uint64_t> word_updates::fetch(const remote_word &what) {
    auto replied = calls_.call<update_reply>(
        what.rank, handler_, update_request{{}, what.update, what.device}, [&] {
            return fmt::format("waiting for rank {} to update a word of its GPU",
                               what.rank.value());
        });
    DIOMP_TRY(replied);
    if (replied.value().failure != 0) {
        return failure_of(what, replied.value().failure);
    }
    return replied.value().old_value;
}

status word_updates::start(const remote_word &what, std::function<void(const error &)> on_failure) {
    if (num_started_.load() >= max_started) {
        DIOMP_TRY(wait());
    }
    num_started_.fetch_add(1);
    calls_.start_then<update_reply>(
        what.rank, handler_, update_request{{}, what.update, what.device},
        [this, what, on_failure = std::move(on_failure)](const update_reply &reply) {
            if (reply.failure != 0) {
                on_failure(failure_of(what, reply.failure));
            }
            num_started_.fetch_sub(1);
        });
    return {};
}

status word_updates::wait() {
    return num_started_.load() == 0
               ? status{}
               : engine_.wait_for_handler([&] { return num_started_.load() == 0; },
                                          [] {
                                              return std::string("waiting for other ranks to "
                                                                 "update words of their GPUs");
                                          });
}

// ---- owner ----

void word_updates::on_request(const transport::message &incoming) {
    update_job added{incoming.source, {}};
    std::memcpy(&added.args, incoming.payload.data(), sizeof(added.args));
    jobs_.push(added);
}

void word_updates::serve() {
    std::optional<update_job> next;
    std::vector<update_job> jobs;
    while (jobs_.next(next)) {
        // What has arrived meanwhile, in its order; a launch has the jobs of one device.
        while (next) {
            const accelerator *on = nullptr;
            jobs.clear();
            for (; next && jobs.size() < device::queue::max_updates;
                 static_cast<void>(jobs_.next(next, true))) {
                auto found = find(next->args);
                if (!found) {
                    refuse(*next, found.failure());
                    continue;
                }
                if (on != nullptr && on != found.value()) {
                    break;
                }
                on = found.value();
                jobs.push_back(*next);
            }
            if (on != nullptr) {
                execute(*on, jobs);
            }
        }
    }
}

result<const accelerator *> word_updates::find(const update_request &args) const {
    device_segment const *const segment = own_.find(args.device);
    auto *const address =
        reinterpret_cast<std::byte *>(args.update.address); // NOLINT(performance-no-int-to-ptr)
    auto const offset = segment == nullptr || segment->memory() == nullptr
                            ? std::nullopt
                            : segment->offset_of(address);
    auto const what = offset ? segment->find(*offset) : std::nullopt;
    if (!what) {
        return error(OMPX_ERR_ADDRESS, fmt::format("no allocation at {:#x}", args.update.address));
    }
    return &segment->memory()->on();
}

void word_updates::refuse(const update_job &what, const error &why) {
    log(log_level::warn, "an atomic operation of rank {} on memory of device {}: {}",
        what.requester.value(), what.args.device, why.message());
    calls_.reply(what.requester, what.args.header.id, update_reply{0, why.code()});
}

void word_updates::execute(const accelerator &on, std::span<const update_job> jobs) {
    std::vector<device::word_update> updates;
    for (update_job const &each : jobs) {
        updates.push_back(each.args.update);
    }
    std::lock_guard const guard(mutex_);
    auto launched = launch(on, updates);
    for (std::size_t i = 0; i < jobs.size(); ++i) {
        if (!launched) {
            refuse(jobs[i], launched.failure());
        } else {
            calls_.reply(jobs[i].requester, jobs[i].args.header.id,
                         update_reply{launched.value()[i], 0});
        }
    }
}

result<std::uint64_t> word_updates::apply(const accelerator &on, const device::word_update &what) {
    std::lock_guard const guard(mutex_);
    auto launched = launch(on, {&what, 1});
    DIOMP_TRY(launched);
    return launched.value().front();
}

void word_updates::prepare(const accelerator &on) {
    std::lock_guard const guard(mutex_);
    auto launched = launch(on, {});
    if (!launched) {
        log(log_level::info, "{} device {} executes no atomic operations of other ranks: {}",
            on.backend->name(), on.id.value(), launched.failure().message());
    }
}

result<std::span<const std::uint64_t>>
word_updates::launch(const accelerator &on, std::span<const device::word_update> updates) {
    device_lane &lane = lanes_[&on];
    if (lane.queue == nullptr) {
        auto pinned =
            on.backend->allocate_pinned(device::queue::max_updates * sizeof(std::uint64_t));
        DIOMP_TRY(pinned);
        auto queue = on.backend->make_queue(on.id);
        DIOMP_TRY(queue);
        lane = {queue.take(), pinned.take()};
    }
    auto *const old_values = reinterpret_cast<std::uint64_t *>(lane.old_values.base());
    DIOMP_TRY(lane.queue->update(updates, old_values));
    result<bool> done = false;
    DIOMP_TRY(engine_.wait_for_network(
        [&] {
            done = lane.queue->is_idle();
            return !done || done.value();
        },
        [&] {
            return fmt::format("waiting for {} device {} to update words for other ranks: it has "
                               "no room for one more block, or its kernels do not end",
                               on.backend->name(), on.id.value());
        }));
    DIOMP_TRY(done);
    return std::span<const std::uint64_t>(old_values, updates.size());
}

} // namespace diomp::offload
