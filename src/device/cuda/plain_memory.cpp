// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/cuda/plain_memory.h"

#include "base/settings.h"

#include <fmt/core.h>

namespace diomp::device::cuda {
namespace {

/// The driver cuts small allocations from blocks of this size, and an interprocess handle opens the
/// whole block: another process would see another base. Whole blocks have none of that.
constexpr std::size_t block_bytes = std::size_t{2} << 20;

class plain_memory final : public memory {
public:
    plain_memory(std::shared_ptr<context> on, address base, std::size_t size_bytes)
        : on_(std::move(on)), base_(base), size_bytes_(size_bytes) {}
    ~plain_memory() override {
        auto const inside = context::current::enter(*on_);
        report(on_->driver(), on_->driver().mem_free(base_), "cuMemFree");
    }

    [[nodiscard]] std::byte *base() const override { return reinterpret_cast<std::byte *>(base_); }
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
        auto inside = context::current::enter(*on_);
        DIOMP_TRY(inside);
        ipc_handle token;
        DIOMP_TRY(check(on_->driver(), on_->driver().ipc_get_mem_handle(&token, base_),
                        "cuIpcGetMemHandle"));
        shared.parts.push_back(
            {.offset_bytes = 0, .size_bytes = size_bytes_, .fd = {}, .token = token.bytes});
        return shared;
    }

private:
    std::shared_ptr<context> on_;
    address base_;
    std::size_t size_bytes_;
};

class plain_peer final : public peer_memory {
public:
    plain_peer(std::shared_ptr<context> on, address base, std::size_t size_bytes)
        : on_(std::move(on)), base_(base), size_bytes_(size_bytes) {}
    ~plain_peer() override {
        auto const inside = context::current::enter(*on_);
        report(on_->driver(), on_->driver().ipc_close_mem_handle(base_), "cuIpcCloseMemHandle");
    }

    [[nodiscard]] std::byte *base() const override { return reinterpret_cast<std::byte *>(base_); }
    [[nodiscard]] std::size_t mapped_bytes() const override { return size_bytes_; }

    status map_more(const shared_handle &added) override {
        if (added.parts.empty()) {
            return {};
        }
        return error(OMPX_ERR_ARG, "memory without virtual memory management does not grow");
    }

private:
    std::shared_ptr<context> on_;
    address base_;
    std::size_t size_bytes_;
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
    shared_part const &part = shared.parts.front();
    address base = 0;
    DIOMP_TRY(
        check(on->driver(),
              on->driver().ipc_open_mem_handle(&base, ipc_handle{part.token}, ipc_lazy_peer_access),
              "cuIpcOpenMemHandle"));
    return std::unique_ptr<peer_memory>(std::make_unique<plain_peer>(on, base, part.size_bytes));
}

} // namespace diomp::device::cuda
