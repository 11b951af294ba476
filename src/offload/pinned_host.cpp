// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/pinned_host.h"

#include "base/log.h"
#include "base/settings.h"

#include <algorithm>
#include <unistd.h>

namespace diomp::offload {

namespace {

/// On pages of another size allocations may share one: there nothing is pinned.
std::size_t least_bytes(std::size_t wanted) {
    bool const own_pages = ::sysconf(_SC_PAGESIZE) == memory::segment::page_bytes;
    return own_pages ? std::max(wanted, memory::segment::large_bytes) : SIZE_MAX;
}

} // namespace

pinned_host::pinned_host(memory::segment &host, std::size_t from_bytes)
    : host_(host), from_bytes_(least_bytes(from_bytes)) {
    host_.before_release([this](std::uint64_t offset) { forget(offset); });
}

pinned_host::~pinned_host() { host_.before_release({}); }

void pinned_host::pin_around(const void *address, std::size_t nbytes, device::backend &by) {
    std::uint64_t const offset =
        reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(host_.base());
    if (nbytes < from_bytes_ || offset >= host_.size_bytes()) {
        return;
    }
    std::lock_guard const guard(mutex_);
    auto const found = host_.find(offset);
    if (!found || found->offset % memory::segment::page_bytes != 0) {
        return;
    }
    pin &known = pin_of(found->offset, by);
    knows_any_.store(true, std::memory_order_relaxed);
    known.copied_bytes += nbytes;
    if (known.is_asked_for || known.copied_bytes < found->nbytes) {
        return;
    }
    known.is_asked_for = true;
    std::size_t const whole = (found->nbytes + memory::segment::page_bytes - 1) /
                              memory::segment::page_bytes * memory::segment::page_bytes;
    auto pinned = by.pin(host_.base() + found->offset, whole);
    if (pinned) {
        known.held = pinned.take();
    } else {
        log(log_level::info,
            "{} of global memory are copied to and from GPUs without being pinned: {}",
            format_size(found->nbytes), pinned.failure().message());
    }
}

pinned_host::pin &pinned_host::pin_of(std::uint64_t offset, const device::backend &by) {
    std::vector<pin> &pins = known_[offset];
    for (pin &each : pins) {
        if (each.by == &by) {
            return each;
        }
    }
    return pins.emplace_back(pin{&by, 0, false, {}});
}

void pinned_host::forget(std::uint64_t offset) {
    if (!knows_any_.load(std::memory_order_relaxed)) { // who frees has seen the copies
        return;
    }
    std::vector<pin> ended; // outlives the guard
    std::lock_guard const guard(mutex_);
    if (auto const found = known_.find(offset); found != known_.end()) {
        ended = std::move(found->second);
        known_.erase(found);
    }
}

} // namespace diomp::offload
