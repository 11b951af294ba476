// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/hip/memory.h"

#include "base/settings.h"

#include <fmt/core.h>

namespace diomp::device::hip {
namespace {

class hip_memory final : public memory {
public:
    hip_memory(std::shared_ptr<const library> runtime, int device, void *base,
               std::size_t size_bytes)
        : runtime_(std::move(runtime)), device_(device), base_(base), size_bytes_(size_bytes) {}
    ~hip_memory() override {
        auto const inside = current_device::enter(*runtime_, device_);
        report(*runtime_, runtime_->free(base_), "hipFree");
    }

    [[nodiscard]] std::byte *base() const override { return static_cast<std::byte *>(base_); }
    [[nodiscard]] std::size_t reserved_bytes() const override { return size_bytes_; }
    [[nodiscard]] std::size_t committed_bytes() const override { return size_bytes_; }

    status commit(std::size_t offset_bytes, std::size_t nbytes) override {
        if (nbytes > size_bytes_ || offset_bytes > size_bytes_ - nbytes) {
            return outside(*this, offset_bytes, nbytes);
        }
        return {};
    }

    [[nodiscard]] std::size_t num_parts() const override { return 1; }

    result<shared_handle> share(std::size_t num_known) override {
        shared_handle shared;
        shared.reserved_bytes = size_bytes_;
        if (num_known > 0) {
            return shared;
        }
        auto inside = current_device::enter(*runtime_, device_);
        DIOMP_TRY(inside);
        ipc_handle token;
        DIOMP_TRY(
            check(*runtime_, runtime_->ipc_get_mem_handle(&token, base_), "hipIpcGetMemHandle"));
        shared.parts.push_back(
            {.offset_bytes = 0, .size_bytes = size_bytes_, .fd = {}, .token = token.bytes});
        return shared;
    }

private:
    std::shared_ptr<const library> runtime_;
    int const device_;
    void *const base_;
    std::size_t const size_bytes_;
};

class hip_peer final : public peer_memory {
public:
    hip_peer(std::shared_ptr<const library> runtime, int device, void *base, std::size_t size_bytes)
        : runtime_(std::move(runtime)), device_(device), base_(base), size_bytes_(size_bytes) {}
    ~hip_peer() override {
        auto const inside = current_device::enter(*runtime_, device_);
        report(*runtime_, runtime_->ipc_close_mem_handle(base_), "hipIpcCloseMemHandle");
    }

    [[nodiscard]] std::byte *base() const override { return static_cast<std::byte *>(base_); }
    [[nodiscard]] std::size_t mapped_bytes() const override { return size_bytes_; }

    status map_more(const shared_handle &added) override {
        if (added.parts.empty()) {
            return {};
        }
        return error(OMPX_ERR_ARG, "memory of HIP's devices does not grow");
    }

private:
    std::shared_ptr<const library> runtime_;
    int const device_;
    void *const base_;
    std::size_t const size_bytes_;
};

} // namespace

result<std::unique_ptr<memory>> allocate(const std::shared_ptr<const library> &runtime, int device,
                                         std::size_t nbytes) {
    auto inside = current_device::enter(*runtime, device);
    DIOMP_TRY(inside);
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
    if (shared.parts.size() != 1 || shared.parts.front().fd.valid()) {
        return error(OMPX_ERR_ARG, "HIP's devices open memory that is shared as one token");
    }
    auto inside = current_device::enter(*runtime, device);
    DIOMP_TRY(inside);
    shared_part const &part = shared.parts.front();
    void *base = nullptr;
    DIOMP_TRY(check(
        *runtime, runtime->ipc_open_mem_handle(&base, ipc_handle{part.token}, ipc_lazy_peer_access),
        "hipIpcOpenMemHandle"));
    return std::unique_ptr<peer_memory>(
        std::make_unique<hip_peer>(runtime, device, base, part.size_bytes));
}

} // namespace diomp::device::hip
