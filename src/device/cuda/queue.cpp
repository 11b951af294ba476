// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/cuda/queue.h"

#include "device/kernels/choice.h"

#include <fmt/core.h>

#include <span>

namespace diomp::device::cuda {
namespace {

class cuda_queue final : public queue {
public:
    cuda_queue(std::shared_ptr<context> on, stream_handle stream)
        : on_(std::move(on)), stream_(stream) {}
    ~cuda_queue() override {
        auto const scope = context::current::enter(*on_);
        report(on_->driver(), on_->driver().stream_destroy(stream_), "cuStreamDestroy");
    }

    status copy(void *dst, const void *src, std::size_t nbytes) override {
        if (nbytes == 0) {
            return {};
        }
        auto scope = context::current::enter(*on_);
        DIOMP_TRY(scope);
        // A 64-bit process has unified addressing: the driver determines the kind of each address.
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
        auto prepared = kernels::prepare(how, dst, sources, count);
        DIOMP_TRY(prepared);
        auto scope = context::current::enter(*on_);
        DIOMP_TRY(scope);
        auto kernel = on_->kernel(prepared.value().kernel);
        DIOMP_TRY(kernel);
        kernels::launch &launch = prepared.value();
        void *parameters[] = {&launch.arguments};
        return check(on_->driver(),
                     on_->driver().launch_kernel(kernel.value(), launch.num_blocks, 1, 1,
                                                 kernels::launch::block_threads, 1, 1, 0, stream_,
                                                 parameters, nullptr),
                     "cuLaunchKernel");
    }

    status update(std::span<const word_update> all, std::uint64_t *old_values) override {
        auto prepared = kernels::prepare(all, old_values);
        DIOMP_TRY(prepared);
        auto scope = context::current::enter(*on_);
        DIOMP_TRY(scope);
        auto kernel = on_->update_kernel();
        DIOMP_TRY(kernel);
        void *parameters[] = {&prepared.value()};
        return check(on_->driver(),
                     on_->driver().launch_kernel(kernel.value(), 1, 1, 1, 1, 1, 1, 0, stream_,
                                                 parameters, nullptr),
                     "cuLaunchKernel");
    }

    result<bool> is_idle() override {
        auto scope = context::current::enter(*on_);
        DIOMP_TRY(scope);
        code const outcome = on_->driver().stream_query(stream_);
        if (outcome == not_ready) {
            return false;
        }
        DIOMP_TRY(check(on_->driver(), outcome, "cuStreamQuery"));
        return true;
    }

    status wait() override {
        auto scope = context::current::enter(*on_);
        DIOMP_TRY(scope);
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
    auto scope = context::current::enter(*on);
    DIOMP_TRY(scope);
    stream_handle stream = nullptr;
    DIOMP_TRY(check(on->driver(), on->driver().stream_create(&stream, stream_non_blocking),
                    "cuStreamCreate"));
    return std::unique_ptr<queue>(std::make_unique<cuda_queue>(on, stream));
}

} // namespace diomp::device::cuda
