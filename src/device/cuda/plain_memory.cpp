// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/cuda/plain_memory.h"

#include "base/sizes.h"
#include "device/internal/fixed_memory.h"

namespace diomp::device::cuda {
namespace {

/// The driver cuts small allocations from blocks of this size, and an interprocess handle opens the
/// whole block, at another base. Whole blocks avoid that.
constexpr std::size_t block_bytes = std::size_t{2} << 20;

class plain_memory final : public fixed_memory {
public:
    plain_memory(std::shared_ptr<context> on, address start, std::size_t size_bytes)
        : fixed_memory(reinterpret_cast<void *>(start), size_bytes), on_(std::move(on)),
          start_(start) {}
    ~plain_memory() override {
        auto const scope = context::current::enter(*on_);
        report(on_->driver(), on_->driver().mem_free(start_), "cuMemFree");
    }

private:
    result<std::array<std::byte, 64>> make_token() override {
        auto scope = context::current::enter(*on_);
        DIOMP_TRY(scope);
        ipc_handle token;
        DIOMP_TRY(check(on_->driver(), on_->driver().ipc_get_mem_handle(&token, start_),
                        "cuIpcGetMemHandle"));
        return token.bytes;
    }

    std::shared_ptr<context> on_;
    address start_;
};

class plain_peer final : public fixed_peer {
public:
    plain_peer(std::shared_ptr<context> on, address start, std::size_t size_bytes)
        : fixed_peer(reinterpret_cast<void *>(start), size_bytes), on_(std::move(on)),
          start_(start) {}
    ~plain_peer() override {
        auto const scope = context::current::enter(*on_);
        report(on_->driver(), on_->driver().ipc_close_mem_handle(start_), "cuIpcCloseMemHandle");
    }

private:
    std::shared_ptr<context> on_;
    address start_;
};

} // namespace

result<std::unique_ptr<memory>> allocate_plain(const std::shared_ptr<context> &on,
                                               std::size_t nbytes) {
    std::size_t const size_bytes = (nbytes + block_bytes - 1) / block_bytes * block_bytes;
    address base = 0;
    code const outcome = on->driver().mem_alloc(&base, size_bytes);
    if (outcome != success) {
        return cuda_error(on->driver(), "cuMemAlloc of " + format_size(size_bytes), outcome);
    }
    return std::unique_ptr<memory>(std::make_unique<plain_memory>(on, base, size_bytes));
}

result<std::unique_ptr<peer_memory>> open_plain(const std::shared_ptr<context> &on,
                                                const shared_handle &shared) {
    shared_extent const &extent = shared.extents.front();
    address base = 0;
    DIOMP_TRY(check(
        on->driver(),
        on->driver().ipc_open_mem_handle(&base, ipc_handle{extent.token}, ipc_lazy_peer_access),
        "cuIpcOpenMemHandle"));
    return std::unique_ptr<peer_memory>(std::make_unique<plain_peer>(on, base, extent.size_bytes));
}

} // namespace diomp::device::cuda
