// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/device_allocator.h"

#include "base/log.h"
#include "base/sizes.h"
#include "offload/alloc_directory.h"
#include "offload/device_segment.h"
#include "offload/device_segments.h"
#include "offload/internal/inflight_guard.h"
#include "offload/internal/pinned_host.h"
#include "offload/internal/segment_memory.h"
#include "offload/remote_memory.h"
#include "offload/table.h"
#include "transport/arena.h"

#include <fmt/core.h>

#include <limits>

namespace diomp::offload {
namespace {

/// Freed blocks of at least this size return their pages to the system, as the C library's
/// allocator does from the same size at the latest. Smaller blocks keep them: a map that is created
/// and removed with every region would pay a page fault per page each time.
constexpr std::size_t return_pages_bytes = std::size_t{32} << 20;

void warn_if_failed(const status &finished) {
    if (!finished) {
        log(log_level::warn, "a transfer in flight when device memory was freed failed: {}",
            finished.failure().message());
    }
}

/// Why an allocation failed: its half of the segment has no space, or its device no memory to
/// commit there.
error no_space_error(device_segment &in, std::size_t nbytes, bool by_openmp) {
    if (in.info(by_openmp).largest_free >= nbytes) {
        return {OMPX_ERR_NOMEM,
                fmt::format("device {} has no memory left for {} bytes in its segment", in.device(),
                            nbytes),
                "free memory of the device, or use fewer processes on it"};
    }
    std::string const size = format_size(in.size_bytes());
    return {OMPX_ERR_NOMEM,
            fmt::format("no space for {} bytes in the segment of device {}: it has {}, of which {} "
                        "are used; one half is for {}",
                        nbytes, in.device(), size, format_size(in.used_bytes()),
                        by_openmp ? "mapped memory" : "ompx_target_alloc"),
            in.remote_index() && in.memory() == nullptr
                ? "start the device's service with more memory (diomp-deviced --memory)"
                : transport::segment_size_remedy("DIOMP_DEVICE_SEGMENT_SIZE",
                                                 nbytes > transport::arena::max_span() ? nbytes
                                                                                       : 2 * nbytes,
                                                 in.size_bytes())};
}

} // namespace

device_allocator::device_allocator(device_segments &segments, alloc_directory &directory,
                                   const transport::arena &arena, rma::transfers &transfers,
                                   pinned_host &pins, const launch::job_info &job)
    : segments_(segments), directory_(directory), arena_(arena), pins_(pins), self_(job.rank),
      local_rank_(job.local), inflight_(std::make_unique<inflight_guard>(transfers, [&segments] {
          if (segments.remote() != nullptr) {
              static_cast<void>(segments.remote()->poll(remote_memory::errors::kept));
          }
      })) {}

device_allocator::~device_allocator() = default;

void *device_allocator::allocate(const diomp_offload_request &request) {
    device_segment *segment = segments_.table().find(request.device);
    if (segment == nullptr) {
        segment = segments_.make(request);
    }
    auto const nbytes = static_cast<std::size_t>(request.nbytes);
    if (segment != nullptr) {
        device_allocation const wanted{OMPX_MEM_LOCAL, true, 0, nbytes, request.host, 0};
        bool is_mapped_again = false;
        if (auto const offset =
                segment->allocate(wanted, memory::heap::granule_bytes, &is_mapped_again)) {
            // libomptarget removes a mapping before it frees its memory. If the same data is mapped
            // in between, threads must not use cached translations to the old copy.
            if (is_mapped_again) {
                segments_.table().advance_epoch();
            }
            if (segment->memory() != nullptr) {
                publish_growth(*segment->memory());
                pins_.pin_allocation(request.host, nbytes, *segment->memory()->on().backend);
            }
            return segment->base() + *offset;
        }
        if (!has_warned_.exchange(true)) {
            error const why = no_space_error(*segment, nbytes, true);
            log(log_level::warn,
                "{}: such memory comes from the device's own allocator from now on, and other "
                "ranks cannot access it [remedy: {}]",
                why.message(), why.remedy());
        }
    }
    segments_.count_unreachable();
    return nullptr;
}

bool device_allocator::release(int device, void *address) {
    device_segment *const segment = segments_.table().containing(address);
    if (segment == nullptr) {
        return false;
    }
    warn_if_failed(inflight_->wait_for_copies());
    std::uint64_t const offset = *segment->offset_of(address);
    if (status const unused = wait_inflight_of(*segment, offset); !unused) {
        log(log_level::warn, "freeing {} on device {}: {}; its memory is not used again", address,
            device, unused.failure().message());
        return true;
    }
    if (segment->release_unshared(offset, return_pages_bytes)) {
        return true;
    }
    auto const found = segment->find(offset);
    if (found && !found->by_openmp) {
        log(log_level::warn,
            "{} on device {} is memory of ompx_target_alloc: it is not freed [remedy: free it with "
            "ompx_target_free, on all ranks if it is symmetric or asymmetric]",
            address, device);
    } else if (status const given = deallocate(*segment, offset); !given) {
        log(log_level::warn, "freeing {} on device {}: {}", address, device,
            given.failure().message());
    }
    return true;
}

device_segment *device_allocator::lend_segment(const diomp_offload_request &request,
                                               std::uint64_t preferred) {
    std::lock_guard const guard(lending_mutex_);
    device_segment *const made = segments_.make(request, preferred);
    if (made == nullptr || made->num_allocations() > 0) {
        return made;
    }
    device_segment::mapped_part const half = made->mapped();
    // All at once: memory that is committed stays so, and half of it would be lost to the device.
    std::uint64_t const begin = made->common().symmetric_end;
    if (!made->memory()->commit(begin, half.end - begin)) {
        return nullptr;
    }
    device_allocation first{};
    first.kind = OMPX_MEM_SYMMETRIC;
    first.nbytes = half.begin - begin;
    device_allocation second{};
    second.kind = OMPX_MEM_LOCAL;
    second.by_openmp = true;
    second.nbytes = half.end - half.begin;
    if (!made->allocate(first, memory::heap::granule_bytes) ||
        !made->allocate(second, memory::heap::granule_bytes)) {
        return nullptr;
    }
    publish_growth(*made->memory());
    return made;
}

void device_allocator::publish_growth(segment_memory &of) {
    if (of.take_growth()) {
        directory_.publish_commit();
    }
}

void device_allocator::before_release(const void *address) {
    warn_if_failed(inflight_->wait_for_copies());
    if (!inflight_->empty()) {
        warn_if_failed(inflight_->wait_until_unused(static_cast<const std::byte *>(address),
                                                    std::numeric_limits<std::size_t>::max()));
    }
}

/// Waits for transfers in flight that use the allocation at `offset`. After an error they may still
/// use it, so it must not be reused.
status device_allocator::wait_inflight_of(const device_segment &segment, std::uint64_t offset) {
    if (inflight_->empty()) { // the usual case: no heap lookup for temporaries of target regions
        return {};
    }
    auto const what = segment.find(offset);
    return what ? inflight_->wait_until_unused(segment.base() + what->offset, what->nbytes)
                : status();
}

status device_allocator::deallocate(device_segment &segment, std::uint64_t offset) {
    warn_if_failed(inflight_->wait_for_copies());
    DIOMP_TRY(wait_inflight_of(segment, offset));
    auto const sharers = segment.begin_release(offset);
    if (!sharers) {
        return error(OMPX_ERR_ADDRESS,
                     fmt::format("no allocation of device {} starts there: it was freed before, or "
                                 "never made",
                                 segment.device()),
                     "free each allocation once, with the address that the allocation returned");
    }
    segments_.table().advance_epoch();
    auto const what = segment.find(offset);
    if (what && sharers->is_used) {
        directory_.drop_cached(segment.key_of(*what));
    }
    // If a sharer cannot be notified, the block is leaked rather than reused, because the sharer
    // may still write to it.
    DIOMP_TRY(directory_.invalidate(segment.device(), offset, *sharers));
    // Before the block can be allocated again.
    if (what && what->nbytes >= return_pages_bytes && segment.remote_index()) {
        segments_.remote()->return_pages(*segment.remote_index(),
                                         {segment.base() + what->offset, what->nbytes});
    } else if (what && what->nbytes >= return_pages_bytes && segment.memory() == nullptr) {
        arena_.release_pages(local_rank_,
                             static_cast<std::uint64_t>(segment.base() - arena_.slot(self_)) +
                                 what->offset,
                             what->nbytes);
    }
    segment.release(offset);
    return {};
}

result<std::uint64_t> device_allocator::allocate_kind(int device, ompx_mem_kind_t kind,
                                                      std::size_t nbytes, std::uint64_t number) {
    auto segment = segments_.segment_of(device);
    DIOMP_TRY(segment);
    device_segment &from = *segment.value();
    auto const offset =
        from.allocate({kind, false, 0, nbytes, nullptr, number}, memory::heap::granule_bytes);
    if (!offset) {
        return no_space_error(from, nbytes, false);
    }
    if (from.memory() != nullptr) {
        publish_growth(*from.memory());
    }
    return *offset;
}

} // namespace diomp::offload
