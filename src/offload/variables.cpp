// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/variables.h"

#include "base/log.h"
#include "base/mappings.h"
#include "memory/directory.h"
#include "messaging/call.h"
#include "messaging/engine.h"
#include "offload/alloc_directory.h"
#include "offload/internal/own_variables.h"
#include "offload/internal/remote_variables.h"
#include "offload/internal/service_queue.h"

#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace diomp::offload {

using outcome = variable_reply::outcome;

namespace {} // namespace

status exposed_variables::expose(int device, const variable &of, const device_ptr &copy) {
    auto const address = reinterpret_cast<std::uintptr_t>(copy.address);
    if (copy.on != nullptr) {
        std::lock_guard const guard(mutex_);
        on_accelerators_[{device, address}] = {copy.on, of.nbytes};
        return {};
    }
    auto const known = directory_.find_own(address);
    if (known && address - known->base + of.nbytes <= known->nbytes) {
        return {};
    }
    DIOMP_TRY(directory_.add(address, of.nbytes));
    registered_bases_.push_back(address);
    return {};
}

std::optional<exposed_variables::exposed_range>
exposed_variables::find(int device, std::uint64_t address) const {
    std::shared_lock const guard(mutex_);
    auto const after = on_accelerators_.upper_bound({device, address});
    if (after == on_accelerators_.begin()) {
        return std::nullopt;
    }
    auto const &[where, all] = *std::prev(after);
    std::uint64_t const inside = address - where.second;
    return where.first == device && inside < all.nbytes_left
               ? std::optional(exposed_range{all.on, all.nbytes_left - inside})
               : std::nullopt;
}

void exposed_variables::revoke_all() {
    for (std::uint64_t const base : std::exchange(registered_bases_, {})) {
        if (status const removed = directory_.remove(base); !removed) {
            log(log_level::warn, "a declare target variable: {}", removed.failure().message());
        }
    }
    {
        std::lock_guard const guard(mutex_);
        on_accelerators_.clear();
    }
    std::lock_guard const until_released(held_);
}

struct variables::pending_request {
    world_rank requester;
    variable_request request;
};

variables::variables(const openmp_devices &openmp, device_segments &segments,
                     alloc_directory &directory, memory::directory &registered,
                     const memory::segment &host, messaging::engine &engine,
                     messaging::call_service &calls)
    : directory_(directory), calls_(calls),
      own_(std::make_unique<own_variables>(openmp, segments, host)), exposed_(registered),
      request_handler_(
          engine.add_handler([this](const transport::message &incoming) { on_request(incoming); })),
      remote_(std::make_unique<remote_variables>(request_handler_, directory, calls)),
      pending_(std::make_unique<service_queue<pending_request>>("diomp-variables", false,
                                                                [this] { serve(); })) {}

variables::~variables() = default;

void variables::open() { pending_->open(); }

void variables::stop() { pending_->stop(); }

void variables::close() {
    std::lock_guard const guard(reply_mutex_);
    is_closed_ = true;
    exposed_.revoke_all();
}

void variables::on_request(const transport::message &incoming) {
    pending_request added{incoming.source, {}};
    std::memcpy(&added.request, incoming.payload.data(), sizeof(added.request));
    pending_->push(added);
}

void variables::serve() {
    std::optional<pending_request> next;
    while (pending_->next(next)) {
        std::lock_guard const guard(reply_mutex_);
        calls_.reply(next->requester, next->request.header.id, make_reply(next->request));
    }
}

variable_reply variables::make_reply(const variable_request &request) {
    variable_reply reply;
    if (is_closed_) {
        reply.how = outcome::closed;
        return reply;
    }
    auto const own = own_->find(request.what, request.name);
    if (!own) {
        return reply;
    }
    reply.nbytes = own->nbytes;
    reply.device = directory_.resolve_device(request.device, request.device_index);
    auto const copy = own_->locate_copy(*own, reply.device);
    if (!copy) {
        log(log_level::info, "{} on device {}, requested by another rank: {}", own->name,
            reply.device, copy.failure().message());
        reply.how = copy.failure().code() == OMPX_ERR_ARG ? outcome::no_device : outcome::no_copy;
        return reply;
    }
    device_ptr const &at = copy.value();
    if (status const exposed = exposed_.expose(reply.device, *own, at); !exposed) {
        log(log_level::warn, "other ranks cannot access {} on device {}: {}", own->name,
            reply.device, exposed.failure().message());
        reply.how = outcome::no_copy;
        return reply;
    }
    reply.how = outcome::found;
    reply.address = reinterpret_cast<std::uintptr_t>(at.address);
    reply.on_accelerator = at.on != nullptr ? 1 : 0;
    // Kernels may cache the value of a constant, so the host's variable decides.
    reply.is_constant = own->is_constant ? 1 : 0;
    return reply;
}

} // namespace diomp::offload
