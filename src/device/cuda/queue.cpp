// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/cuda/queue.h"

#include "device/cuda/kernels.h"
#include "device/kernels/reduction.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>

namespace diomp::device::cuda {
namespace {

using kernels::reduction_arguments;
static_assert(queue::most_sources == reduction_arguments::most_sources);

constexpr unsigned threads_per_block = 256;
/// So many fill a device's multiprocessors several times; each thread takes more than one element
/// of arrays that are longer.
constexpr std::size_t most_blocks = 4096;
constexpr std::size_t pack_bytes = 16;

status check_arguments(const void *dst, std::span<const void *const> sources) {
    if (dst == nullptr || sources.empty() || sources.size() > queue::most_sources) {
        return error(OMPX_ERR_ARG, fmt::format("a reduction of {} arrays: 1 to {} are possible",
                                               sources.size(), queue::most_sources));
    }
    return {};
}

reduction_arguments arguments_of(const kernel_choice &by, std::size_t divisor, void *dst,
                                 std::span<const void *const> sources, std::size_t count) {
    reduction_arguments made;
    made.count = count * by.per_element;
    made.divisor = divisor;
    made.num_sources = sources.size();
    made.dst = reinterpret_cast<address>(dst);
    address bits = made.dst;
    for (std::size_t i = 0; i < sources.size(); ++i) {
        made.sources[i] = reinterpret_cast<address>(sources[i]);
        bits |= made.sources[i];
    }
    made.packs = bits % pack_bytes == 0 ? made.count * by.element_bytes / pack_bytes : 0;
    return made;
}

unsigned blocks_for(const reduction_arguments &all, std::size_t element_bytes) {
    std::size_t const steps =
        std::max<std::size_t>(all.packs, all.count - all.packs * (pack_bytes / element_bytes));
    return static_cast<unsigned>(std::clamp<std::size_t>(
        (steps + threads_per_block - 1) / threads_per_block, 1, most_blocks));
}

class cuda_queue final : public queue {
public:
    cuda_queue(std::shared_ptr<context> on, stream_handle stream)
        : on_(std::move(on)), stream_(stream) {}
    ~cuda_queue() override {
        auto const inside = context::current::enter(*on_);
        report(on_->driver(), on_->driver().stream_destroy(stream_), "cuStreamDestroy");
    }

    status copy(void *dst, const void *src, std::size_t nbytes) override {
        if (nbytes == 0) {
            return {};
        }
        auto inside = context::current::enter(*on_);
        DIOMP_TRY(inside);
        // All addresses of a 64-bit process are of one space: the driver sees by itself which
        // memory each is of.
        code const outcome = on_->driver().memcpy_async(
            reinterpret_cast<address>(dst), reinterpret_cast<address>(src), nbytes, stream_);
        if (outcome != success) {
            return cuda_error(on_->driver(),
                              fmt::format("cuMemcpyAsync of {} bytes from {} to {} on device {}",
                                          nbytes, src, dst, on_->device()),
                              outcome);
        }
        return {};
    }

    status reduce(const reduction &how, void *dst, std::span<const void *const> sources,
                  std::size_t count) override {
        if (count == 0) {
            return {};
        }
        DIOMP_TRY(check_arguments(dst, sources));
        auto const chosen = choose_kernel(how);
        if (!chosen) {
            return queue::reduce(how, dst, sources, count);
        }
        auto inside = context::current::enter(*on_);
        DIOMP_TRY(inside);
        auto kernel = on_->kernel(chosen->name);
        DIOMP_TRY(kernel);
        reduction_arguments all = arguments_of(*chosen, how.divisor, dst, sources, count);
        void *parameters[] = {&all};
        return check(on_->driver(),
                     on_->driver().launch_kernel(
                         kernel.value(), blocks_for(all, chosen->element_bytes), 1, 1,
                         threads_per_block, 1, 1, 0, stream_, parameters, nullptr),
                     "cuLaunchKernel");
    }

    result<bool> is_idle() override {
        auto inside = context::current::enter(*on_);
        DIOMP_TRY(inside);
        code const outcome = on_->driver().stream_query(stream_);
        if (outcome == not_ready) {
            return false;
        }
        DIOMP_TRY(check(on_->driver(), outcome, "cuStreamQuery"));
        return true;
    }

    status wait() override {
        auto inside = context::current::enter(*on_);
        DIOMP_TRY(inside);
        return check(on_->driver(), on_->driver().stream_synchronize(stream_),
                     "cuStreamSynchronize");
    }

    [[nodiscard]] void *native_stream() const override { return stream_; }

private:
    std::shared_ptr<context> on_;
    stream_handle stream_;
};

} // namespace

result<std::unique_ptr<queue>> make_queue(const std::shared_ptr<context> &on) {
    auto inside = context::current::enter(*on);
    DIOMP_TRY(inside);
    stream_handle stream = nullptr;
    DIOMP_TRY(check(on->driver(), on->driver().stream_create(&stream, stream_non_blocking),
                    "cuStreamCreate"));
    return std::unique_ptr<queue>(std::make_unique<cuda_queue>(on, stream));
}

} // namespace diomp::device::cuda
