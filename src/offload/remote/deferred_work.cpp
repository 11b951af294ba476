// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/remote/deferred_work.h"

#include <algorithm>

namespace diomp::offload::remote {

void deferred_work::add_memory_only(std::span<const std::uint64_t> kernels) {
    std::lock_guard const guard(mutex_);
    for (std::uint64_t const kernel : kernels) {
        times_.try_emplace(kernel, std::chrono::microseconds::max());
    }
}

void deferred_work::record_time(std::uint64_t kernel, std::chrono::microseconds taken) {
    std::lock_guard const guard(mutex_);
    if (auto const known = times_.find(kernel); known != times_.end()) {
        known->second = taken;
    }
}

bool deferred_work::can_defer(std::span<const std::uint64_t> kernels) const {
    std::lock_guard const guard(mutex_);
    return is_enabled_ && batches_.size() < max_pending &&
           std::ranges::all_of(
               kernels,
               [&](std::uint64_t kernel) {
                   auto const known = times_.find(kernel);
                   return known != times_.end() && known->second <= max_kernel_time;
               });
}

void deferred_work::add(const event &batch) {
    std::lock_guard const guard(mutex_);
    batches_.push_back({batch, generation_.load(std::memory_order_relaxed) + 1});
    generation_.fetch_add(1, std::memory_order_release);
}

bool deferred_work::complete(const queue *owner, std::uint64_t batch) {
    std::lock_guard const guard(mutex_);
    return std::erase_if(batches_, [&](const entry &each) {
               return each.batch.owner == owner && each.batch.batch <= batch;
           }) > 0;
}

std::vector<event> deferred_work::complete_up_to(std::uint64_t generation) {
    std::lock_guard const guard(mutex_);
    std::vector<event> done;
    while (!batches_.empty() && batches_.front().generation <= generation) {
        done.push_back(batches_.front().batch);
        batches_.pop_front();
    }
    return done;
}

std::vector<event> deferred_work::pending() const {
    std::lock_guard const guard(mutex_);
    std::vector<event> last;
    for (entry const &each : batches_) {
        auto const known = std::ranges::find(last, each.batch.owner, &event::owner);
        if (known == last.end()) {
            last.push_back(each.batch);
        } else {
            *known = each.batch;
        }
    }
    return last;
}

bool deferred_work::is_empty() const {
    std::lock_guard const guard(mutex_);
    return batches_.empty();
}

} // namespace diomp::offload::remote
