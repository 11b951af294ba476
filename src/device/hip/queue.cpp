// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/hip/queue.h"

#include "device/kernels/choice.h"

#include <fmt/core.h>

#include <span>

namespace diomp::device::hip {
namespace {

class hip_queue final : public queue {
public:
    hip_queue(std::shared_ptr<const library> runtime, int device, stream_handle stream,
              std::shared_ptr<device_kernels> kernels)
        : runtime_(std::move(runtime)), device_(device), stream_(stream),
          kernels_(std::move(kernels)) {}
    ~hip_queue() override {
        auto const scope = current_device::enter(*runtime_, device_);
        report(*runtime_, runtime_->stream_destroy(stream_), "hipStreamDestroy");
    }

    status copy(void *dst, const void *src, std::size_t nbytes) override {
        if (nbytes == 0) {
            return {};
        }
        auto scope = current_device::enter(*runtime_, device_);
        DIOMP_TRY(scope);
        code const outcome = runtime_->memcpy_async(dst, src, nbytes, copy_default, stream_);
        if (outcome != success) {
            return hip_error(*runtime_,
                             fmt::format("hipMemcpyAsync of {} bytes from {} to {} on device {}",
                                         nbytes, src, dst, device_),
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
        auto scope = current_device::enter(*runtime_, device_);
        DIOMP_TRY(scope);
        auto kernel = kernels_->find(prepared.value().kernel);
        DIOMP_TRY(kernel);
        kernels::launch &launch = prepared.value();
        void *parameters[] = {&launch.arguments};
        return check(*runtime_,
                     runtime_->launch_kernel(kernel.value(), launch.num_blocks, 1, 1,
                                             kernels::launch::block_threads, 1, 1, 0, stream_,
                                             parameters, nullptr),
                     "hipModuleLaunchKernel");
    }

    status update(std::span<const word_update> all, std::uint64_t *old_values) override {
        auto prepared = kernels::prepare(all, old_values);
        DIOMP_TRY(prepared);
        auto scope = current_device::enter(*runtime_, device_);
        DIOMP_TRY(scope);
        auto kernel = kernels_->find_update();
        DIOMP_TRY(kernel);
        void *parameters[] = {&prepared.value()};
        return check(*runtime_,
                     runtime_->launch_kernel(kernel.value(), 1, 1, 1, 1, 1, 1, 0, stream_,
                                             parameters, nullptr),
                     "hipModuleLaunchKernel");
    }

    result<bool> is_idle() override {
        code const outcome =
            runtime_->stream_query(stream_); // valid from any thread and with any current device
        if (outcome == not_ready) {
            return false;
        }
        DIOMP_TRY(check(*runtime_, outcome, "hipStreamQuery"));
        return true;
    }

    status wait() override {
        return check(*runtime_, runtime_->stream_synchronize(stream_), "hipStreamSynchronize");
    }

    [[nodiscard]] void *native_stream() const override { return stream_; }

private:
    std::shared_ptr<const library> runtime_;
    int const device_;
    stream_handle const stream_;
    std::shared_ptr<device_kernels> kernels_;
};

} // namespace

result<std::unique_ptr<queue>> make_queue(const std::shared_ptr<const library> &runtime, int device,
                                          std::shared_ptr<device_kernels> kernels) {
    auto scope = current_device::enter(*runtime, device);
    DIOMP_TRY(scope);
    stream_handle stream = nullptr;
    DIOMP_TRY(check(*runtime, runtime->stream_create(&stream, stream_non_blocking),
                    "hipStreamCreateWithFlags"));
    return std::unique_ptr<queue>(
        std::make_unique<hip_queue>(runtime, device, stream, std::move(kernels)));
}

} // namespace diomp::device::hip
