// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/device_ranges.h"

#include <cstdio>
#include <cstdlib>
#include <string>

namespace diomp_test {
namespace {

using diomp::transport::memory_kind;

std::string value_of(const char *variable) {
    const char *const set = std::getenv(variable);
    return set == nullptr ? "" : set;
}

template <typename T>
T demand(diomp::result<T> outcome) {
    if (!outcome.ok()) {
        std::fprintf(stderr, "memory of a device: %s\n", outcome.failure().message().c_str());
        std::_Exit(1);
    }
    return outcome.take();
}

} // namespace

device_ranges::device_ranges(int rank) {
    std::string const wanted = value_of("DIOMP_TEST_DEVICE_RANGES");
    kind_ = wanted == "cuda"  ? memory_kind::cuda
            : wanted == "hip" ? memory_kind::hip
                              : memory_kind::host;
    has_one_ = are_tested() && (rank % 2 == 0 || value_of("DIOMP_TEST_DEVICES") == "all");
}

/// The network keeps it until the process ends.
device_ranges::~device_ranges() { static_cast<void>(memory_.release()); }

std::vector<diomp::transport::device_range> device_ranges::make() {
    if (!has_one_) {
        return {};
    }
    vendor_ = kind_ == memory_kind::cuda
                  ? demand(diomp::device::create_cuda({.path = value_of("DIOMP_CUDA_LIBRARY")}))
                  : demand(diomp::device::create_hip({.path = value_of("DIOMP_HIP_LIBRARY")}));
    device_ = diomp::device::device_id(vendor_->num_devices() - 1);
    for (auto *const each : {&memory_, &unknown_}) {
        *each = demand(vendor_->reserve(device_, num_bytes));
        if (auto const committed = (*each)->commit(0, num_bytes); !committed) {
            std::fprintf(stderr, "%s\n", committed.failure().message().c_str());
            std::_Exit(1);
        }
    }
    return {
        {{kind_, reinterpret_cast<std::uintptr_t>(memory_->base()), num_bytes}, device_.value()}};
}

void device_ranges::copy(void *destination, const void *source, std::size_t nbytes) const {
    auto const queue = demand(vendor_->make_queue(device_));
    for (auto const &done : {queue->copy(destination, source, nbytes), queue->wait()}) {
        if (!done) {
            std::fprintf(stderr, "%s\n", done.failure().message().c_str());
            std::_Exit(1);
        }
    }
}

} // namespace diomp_test
