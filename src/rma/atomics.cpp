// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "rma/atomics.h"

#include "memory/memory.h"
#include "rma/internal/apply_atomic.h"
#include "rma/internal/native_atomics.h"
#include "rma/internal/remote_transfers.h"
#include "rma/internal/target_requests.h"

#include <fmt/core.h>

#include <cstring>

namespace diomp::rma {
namespace {

target_request make_request(request_kind what, const memory::location &target, const void *operand,
                            const void *desired, ompx_type_t type, ompx_op_t op, std::size_t size) {
    target_request request;
    request.what = what;
    request.type = type;
    request.op = op;
    request.nbytes = static_cast<std::uint32_t>(size);
    request.address = target.remote_address;
    if (operand != nullptr) {
        std::memcpy(request.operand.data(), operand, size);
    }
    if (desired != nullptr) {
        std::memcpy(request.desired.data(), desired, size);
    }
    return request;
}

} // namespace

atomics::atomics(world_rank self, memory::address_space &space, messaging::engine &engine,
                 target_requests &requests, remote_transfers &remote)
    : space_(space), engine_(engine), requests_(requests), remote_(remote),
      native_(std::make_unique<native_atomics>(self, engine)) {}

atomics::~atomics() = default;

bool atomics::completes_here(const memory::location &target) const {
    return target.direct != nullptr || native_->apply_to(target);
}

result<std::size_t> atomics::check(ompx_type_t type, ompx_op_t op) {
    return check_atomic(type, op);
}

result<memory::location> atomics::locate(world_rank peer, void *target, std::size_t size) {
    if (reinterpret_cast<std::uintptr_t>(target) % size != 0) {
        return error(
            OMPX_ERR_ARG,
            fmt::format("the target of an atomic operation on {} bytes is not aligned to its size",
                        size),
            "declare it with its type, or align the allocation");
    }
    return space_.locate(peer, target, size);
}

status atomics::fetch_here(world_rank peer, const memory::location &target, const void *operand,
                           void *result, ompx_type_t type, ompx_op_t op, std::size_t size) {
    if (native_->apply_to(target)) {
        return native_->fetch(peer, target, operand, result, type, op, size);
    }
    apply_atomic(target.direct, operand, result, type, op);
    engine_.wake_for_store(peer);
    return {};
}

status atomics::compare_swap_here(world_rank peer, const memory::location &target,
                                  const void *expected, const void *desired, void *result,
                                  ompx_type_t type, std::size_t size) {
    if (native_->apply_to(target)) {
        return native_->compare_swap(peer, target, expected, desired, result, size);
    }
    apply_compare_swap(target.direct, expected, desired, result, type);
    engine_.wake_for_store(peer);
    return {};
}

status atomics::fetch(world_rank peer, void *target, const void *operand, void *result,
                      ompx_type_t type, ompx_op_t op) {
    auto size = check_atomic(type, op);
    DIOMP_TRY(size);
    auto location = locate(peer, target, size.value());
    DIOMP_TRY(location);
    if (completes_here(location.value())) {
        return fetch_here(peer, location.value(), operand, result, type, op, size.value());
    }
    return run_at_target(peer, location.value(),
                         make_request(request_kind::fetch, location.value(), operand, nullptr, type,
                                      op, size.value()),
                         result);
}

status atomics::compare_swap(world_rank peer, void *target, const void *expected,
                             const void *desired, void *result, ompx_type_t type) {
    auto size = check_atomic(type, OMPX_REPLACE);
    DIOMP_TRY(size);
    auto location = locate(peer, target, size.value());
    DIOMP_TRY(location);
    if (completes_here(location.value())) {
        return compare_swap_here(peer, location.value(), expected, desired, result, type,
                                 size.value());
    }
    return run_at_target(peer, location.value(),
                         make_request(request_kind::compare_swap, location.value(), expected,
                                      desired, type, OMPX_REPLACE, size.value()),
                         result);
}

status atomics::run_at_target(world_rank peer, const memory::location &target,
                              const target_request &request, void *result) {
    if (result == nullptr && target.in_segment) {
        DIOMP_TRY(requests_.send(peer, request));
        return {};
    }
    auto reply = requests_.call(peer, request, [&] {
        return fmt::format("waiting for rank {} to perform an atomic operation", peer.value());
    });
    DIOMP_TRY(reply);
    if (reply.value().refused != 0) {
        return remote_.refused(peer, target, request.nbytes, access::write);
    }
    if (result != nullptr) {
        std::memcpy(result, reply.value().old.data(), request.nbytes);
    }
    return {};
}

status atomics::start_at_target(world_rank peer, const memory::location &target,
                                const target_request &request, void *result, ompx_event_t *event) {
    if (!remote_.is_remote(peer)) { // registered memory of a rank of this node
        if (event != nullptr) {
            *event = nullptr;
        }
        return run_at_target(peer, target, request, result);
    }
    auto number =
        result == nullptr ? requests_.send(peer, request) : requests_.start(peer, request, result);
    DIOMP_TRY(number);
    if (event != nullptr) {
        *event =
            requests_.acks().event_of(number.value(), peer, request.nbytes, "an atomic operation");
    }
    return {};
}

status atomics::start_fetch(world_rank peer, void *target, const void *operand, void *result,
                            ompx_type_t type, ompx_op_t op, ompx_event_t *event) {
    auto size = check_atomic(type, op);
    DIOMP_TRY(size);
    auto location = locate(peer, target, size.value());
    DIOMP_TRY(location);
    if (completes_here(location.value())) {
        DIOMP_TRY(fetch_here(peer, location.value(), operand, result, type, op, size.value()));
        return finish_native(peer, location.value(), result, event);
    }
    return start_at_target(peer, location.value(),
                           make_request(request_kind::fetch, location.value(), operand, nullptr,
                                        type, op, size.value()),
                           result, event);
}

status atomics::start_compare_swap(world_rank peer, void *target, const void *expected,
                                   const void *desired, void *result, ompx_type_t type,
                                   ompx_event_t *event) {
    auto size = check_atomic(type, OMPX_REPLACE);
    DIOMP_TRY(size);
    auto location = locate(peer, target, size.value());
    DIOMP_TRY(location);
    if (completes_here(location.value())) {
        DIOMP_TRY(compare_swap_here(peer, location.value(), expected, desired, result, type,
                                    size.value()));
        return finish_native(peer, location.value(), result, event);
    }
    return start_at_target(peer, location.value(),
                           make_request(request_kind::compare_swap, location.value(), expected,
                                        desired, type, OMPX_REPLACE, size.value()),
                           result, event);
}

/// The network's atomic operations without a result are complete at the target after a flush only.
status atomics::finish_native(world_rank peer, const memory::location &target, const void *result,
                              ompx_event_t *event) {
    if (event == nullptr) {
        return {};
    }
    *event = nullptr;
    return result == nullptr && native_->apply_to(target) && remote_.is_remote(peer)
               ? remote_.flush(peer)
               : status{};
}

} // namespace diomp::rma
