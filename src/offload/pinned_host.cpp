// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/internal/pinned_host.h"

#include "base/log.h"
#include "base/sizes.h"
#include "memory/segment.h"

#include <algorithm>
#include <unistd.h>

namespace diomp::offload {

namespace {

/// Disables pinning with another page size, since allocations may then share a page.
std::size_t effective_min_bytes(std::size_t wanted) {
    bool const own_pages = ::sysconf(_SC_PAGESIZE) == memory::segment::page_bytes;
    return own_pages ? std::max(wanted, memory::segment::large_bytes) : SIZE_MAX;
}

} // namespace

pinned_host::pinned_host(memory::segment &host, std::size_t min_bytes)
    : host_(host), min_bytes_(effective_min_bytes(min_bytes)) {
    host_.before_release([this](std::uint64_t offset) { unpin(offset); });
}

pinned_host::~pinned_host() { host_.before_release({}); }

void pinned_host::pin_allocation(const void *address, std::size_t nbytes, device::backend &by) {
    std::uint64_t const offset =
        reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(host_.base());
    if (nbytes < min_bytes_ || offset >= host_.size_bytes()) {
        return;
    }
    std::lock_guard const guard(mutex_);
    auto const found = host_.find(offset);
    if (!found || found->offset % memory::segment::page_bytes != 0) {
        return;
    }
    pin &known = find_or_add_pin(found->offset, by);
    has_pins_.store(true, std::memory_order_relaxed);
    known.copied_bytes += nbytes;
    if (known.was_attempted || known.copied_bytes < found->nbytes) {
        return;
    }
    known.was_attempted = true;
    std::size_t const whole = (found->nbytes + memory::segment::page_bytes - 1) /
                              memory::segment::page_bytes * memory::segment::page_bytes;
    auto pinned = by.pin(host_.base() + found->offset, whole);
    if (pinned) {
        known.memory = pinned.take();
    } else {
        log(log_level::info,
            "{} of global memory could not be pinned for copies to and from GPUs: {}",
            format_size(found->nbytes), pinned.failure().message());
    }
}

pinned_host::pin &pinned_host::find_or_add_pin(std::uint64_t offset, const device::backend &by) {
    std::vector<pin> &pins = pins_[offset];
    for (pin &each : pins) {
        if (each.by == &by) {
            return each;
        }
    }
    return pins.emplace_back(pin{&by, 0, false, {}});
}

void pinned_host::unpin(std::uint64_t offset) {
    if (!has_pins_.load(std::memory_order_relaxed)) { // a thread that frees has seen the copies
        return;
    }
    std::vector<pin> ended; // destroyed after the guard
    std::lock_guard const guard(mutex_);
    if (auto const found = pins_.find(offset); found != pins_.end()) {
        ended = std::move(found->second);
        pins_.erase(found);
    }
}

} // namespace diomp::offload
