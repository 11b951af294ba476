// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/hip/memory.h"

#include "base/sizes.h"
#include "device/internal/fixed_memory.h"

#include <fmt/core.h>

namespace diomp::device::hip {
namespace {

class hip_memory final : public fixed_memory {
public:
    hip_memory(std::shared_ptr<const library> runtime, int device, void *base,
               std::size_t size_bytes)
        : fixed_memory(base, size_bytes), runtime_(std::move(runtime)), device_(device) {}
    ~hip_memory() override {
        auto const scope = current_device::enter(*runtime_, device_);
        report(*runtime_, runtime_->free(base()), "hipFree");
    }

private:
    result<std::array<std::byte, 64>> make_token() override {
        auto scope = current_device::enter(*runtime_, device_);
        DIOMP_TRY(scope);
        ipc_handle token;
        DIOMP_TRY(
            check(*runtime_, runtime_->ipc_get_mem_handle(&token, base()), "hipIpcGetMemHandle"));
        return token.bytes;
    }

    std::shared_ptr<const library> runtime_;
    int const device_;
};

class hip_peer final : public fixed_peer {
public:
    hip_peer(std::shared_ptr<const library> runtime, int device, void *base, std::size_t size_bytes)
        : fixed_peer(base, size_bytes), runtime_(std::move(runtime)), device_(device) {}
    ~hip_peer() override {
        auto const scope = current_device::enter(*runtime_, device_);
        report(*runtime_, runtime_->ipc_close_mem_handle(base()), "hipIpcCloseMemHandle");
    }

private:
    std::shared_ptr<const library> runtime_;
    int const device_;
};

} // namespace

result<std::unique_ptr<memory>> allocate(const std::shared_ptr<const library> &runtime, int device,
                                         std::size_t nbytes) {
    auto scope = current_device::enter(*runtime, device);
    DIOMP_TRY(scope);
    void *base = nullptr;
    code const outcome = runtime->malloc(&base, nbytes);
    if (outcome != success) {
        return hip_error(*runtime,
                         fmt::format("hipMalloc of {} on device {}", format_size(nbytes), device),
                         outcome);
    }
    return std::unique_ptr<memory>(std::make_unique<hip_memory>(runtime, device, base, nbytes));
}

result<std::unique_ptr<peer_memory>> open(const std::shared_ptr<const library> &runtime, int device,
                                          const shared_handle &shared) {
    if (shared.extents.size() != 1 || shared.extents.front().fd.valid()) {
        return error(OMPX_ERR_ARG, "HIP devices can only open memory that is shared as one token");
    }
    auto scope = current_device::enter(*runtime, device);
    DIOMP_TRY(scope);
    shared_extent const &extent = shared.extents.front();
    void *base = nullptr;
    DIOMP_TRY(
        check(*runtime,
              runtime->ipc_open_mem_handle(&base, ipc_handle{extent.token}, ipc_lazy_peer_access),
              "hipIpcOpenMemHandle"));
    return std::unique_ptr<peer_memory>(
        std::make_unique<hip_peer>(runtime, device, base, extent.size_bytes));
}

} // namespace diomp::device::hip
