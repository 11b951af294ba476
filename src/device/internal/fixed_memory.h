// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory that is fully allocated from the start and cannot grow, shared as one token of 64 bytes;
// for backends. A vendor's subclass creates the token and frees the memory in its destructor.
#pragma once

#include "device/device.h"

#include <array>
#include <cstddef>

namespace diomp::device {

class fixed_memory : public memory {
public:
    [[nodiscard]] std::byte *base() const final { return base_; }
    [[nodiscard]] std::size_t reserved_bytes() const final { return size_bytes_; }
    [[nodiscard]] std::size_t committed_bytes() const final { return size_bytes_; }
    status commit(std::size_t offset_bytes, std::size_t nbytes) final;
    [[nodiscard]] std::size_t num_extents() const final { return 1; }
    result<shared_handle> share(std::size_t num_known, std::size_t max_extents) final;

protected:
    fixed_memory(void *base, std::size_t size_bytes)
        : base_(static_cast<std::byte *>(base)), size_bytes_(size_bytes) {}

    /// Creates the token with which another process of the node opens the whole memory. Blocks
    /// briefly.
    virtual result<std::array<std::byte, 64>> make_token() = 0;

private:
    std::byte *const base_;
    std::size_t const size_bytes_;
};

class fixed_peer : public peer_memory {
public:
    [[nodiscard]] std::byte *base() const final { return base_; }
    [[nodiscard]] std::size_t mapped_bytes() const final { return size_bytes_; }
    status map_more(const shared_handle &added) final;

protected:
    fixed_peer(void *base, std::size_t size_bytes)
        : base_(static_cast<std::byte *>(base)), size_bytes_(size_bytes) {}

private:
    std::byte *const base_;
    std::size_t const size_bytes_;
};

} // namespace diomp::device
