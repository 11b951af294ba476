// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Remote memory access and signals.
#include "shmem/transfers.h"

#include "library.h"

#include <algorithm>

using namespace diomp_shmem;

namespace {

void put(const char *function, shmem_ctx_t ctx, void *dest, const void *source, std::size_t nbytes,
         int pe) {
    check(function, ompx_put(default_target(function, ctx, pe), dest, source, nbytes));
}

void get(const char *function, shmem_ctx_t ctx, void *dest, const void *source, std::size_t nbytes,
         int pe) {
    check(function, ompx_get(dest, default_target(function, ctx, pe), source, nbytes));
}

/// The context that completes a non-blocking transfer apart from others; nullptr: none.
ompx_context_t own_context(const char *function, shmem_ctx_t ctx, int pe, int *rank) {
    require_ready(function);
    target const found = find_target(function, ctx, pe);
    *rank = found.rank;
    if (found.through != nullptr && found.through->own == nullptr) {
        found.through->has_others.store(true, std::memory_order_relaxed);
    }
    return found.through == nullptr ? nullptr : found.through->own;
}

void put_nbi(const char *function, shmem_ctx_t ctx, void *dest, const void *source,
             std::size_t nbytes, int pe) {
    int rank = 0;
    ompx_context_t const own = own_context(function, ctx, pe, &rank);
    check(function, own == nullptr ? ompx_put_nb(rank, dest, source, nbytes, nullptr)
                                   : ompx_context_put_nb(own, rank, dest, source, nbytes));
}

void get_nbi(const char *function, shmem_ctx_t ctx, void *dest, const void *source,
             std::size_t nbytes, int pe) {
    int rank = 0;
    ompx_context_t const own = own_context(function, ctx, pe, &rank);
    check(function, own == nullptr ? ompx_get_nb(dest, rank, source, nbytes, nullptr)
                                   : ompx_context_get_nb(own, dest, rank, source, nbytes));
}

void put_signal(const char *function, shmem_ctx_t ctx, void *dest, const void *source,
                std::size_t nbytes, std::uint64_t *address, std::uint64_t signal, int op, int pe) {
    check(function, ompx_put_signal(default_target(function, ctx, pe), dest, source, nbytes,
                                    address, signal, static_cast<ompx_signal_op_t>(op)));
}

void put_signal_nbi(const char *function, shmem_ctx_t ctx, void *dest, const void *source,
                    std::size_t nbytes, std::uint64_t *address, std::uint64_t signal, int op,
                    int pe) {
    check(function,
          ompx_put_signal_nb(default_target(function, ctx, pe), dest, source, nbytes, address,
                             signal, static_cast<ompx_signal_op_t>(op), nullptr));
}

/// Blocks at regular distances, in elements.
struct blocks {
    std::size_t element = 0; ///< bytes
    std::size_t size = 0;
    std::size_t count = 0;
    std::size_t dest_stride = 0;
    std::size_t source_stride = 0;
};

blocks check_blocks(const char *function, std::size_t element, std::ptrdiff_t dest_stride,
                    std::ptrdiff_t source_stride, std::size_t size, std::size_t count) {
    if (dest_stride < 1 || source_stride < 1) {
        fail(function, "a stride is at least 1 element");
    }
    auto const to_stride = static_cast<std::size_t>(dest_stride);
    auto const from_stride = static_cast<std::size_t>(source_stride);
    std::size_t const distance = std::max({to_stride, from_stride, size});
    if (bytes_of(bytes_of(distance, count), element) == SIZE_MAX) {
        fail(function, "the bytes of the blocks and their strides are too many for a size_t");
    }
    return {element, size, count, to_stride, from_stride};
}

/// The blocks as rows of a matrix of each side; then(volume, offsets, dest, source dimensions). A
/// row is at least as long as its block; strides below that go block by block.
template <typename Matrix, typename Block>
void transfer_blocks(const blocks &shape, Matrix &&matrix, Block &&block) {
    if (shape.size == 0 || shape.count == 0) {
        return;
    }
    if (shape.dest_stride < shape.size || shape.source_stride < shape.size) {
        for (std::size_t i = 0; i < shape.count; ++i) {
            block(i * shape.dest_stride * shape.element, i * shape.source_stride * shape.element,
                  shape.size * shape.element);
        }
        return;
    }
    std::size_t const volume[] = {shape.count, shape.size};
    std::size_t const offsets[] = {0, 0};
    std::size_t const dest[] = {shape.count, shape.dest_stride};
    std::size_t const source[] = {shape.count, shape.source_stride};
    matrix(volume, offsets, dest, source);
}

void put_blocks(const char *function, shmem_ctx_t ctx, void *dest, const void *source,
                const blocks &shape, int pe) {
    int const rank = default_target(function, ctx, pe);
    transfer_blocks(
        shape,
        [&](auto &volume, auto &offsets, auto &dest_size, auto &source_size) {
            check(function, ompx_put_rect(rank, dest, source, shape.element, 2, volume, offsets,
                                          offsets, dest_size, source_size));
        },
        [&](std::size_t to, std::size_t from, std::size_t nbytes) {
            check(function, ompx_put(rank, static_cast<std::byte *>(dest) + to,
                                     static_cast<const std::byte *>(source) + from, nbytes));
        });
}

void get_blocks(const char *function, shmem_ctx_t ctx, void *dest, const void *source,
                const blocks &shape, int pe) {
    int const rank = default_target(function, ctx, pe);
    transfer_blocks(
        shape,
        [&](auto &volume, auto &offsets, auto &dest_size, auto &source_size) {
            check(function, ompx_get_rect(dest, rank, source, shape.element, 2, volume, offsets,
                                          offsets, dest_size, source_size));
        },
        [&](std::size_t to, std::size_t from, std::size_t nbytes) {
            check(function, ompx_get(static_cast<std::byte *>(dest) + to, rank,
                                     static_cast<const std::byte *>(source) + from, nbytes));
        });
}

void update_signal(const char *function, shmem_ctx_t ctx, std::uint64_t *address,
                   std::uint64_t signal, ompx_op_t op, int pe) {
    check(function, ompx_atomic_fetch(default_target(function, ctx, pe), address, &signal, nullptr,
                                      OMPX_UINT64, op));
}

} // namespace

// Each form without and with a context.
#define DEFINE_BLOCK_(function, context, ctx, type, nbytes, transfer)                              \
    void function(context type *dest, const type *source, size_t nelems, int pe) {                 \
        transfer(__func__, ctx, dest, source, bytes_of(nelems, nbytes), pe);                       \
    }
#define DEFINE_BLOCKS_(before, name, type, nbytes)                                                 \
    DEFINE_BLOCK_(shmem_##before##put##name, , SHMEM_CTX_DEFAULT, type, nbytes, put)               \
    DEFINE_BLOCK_(shmem_##before##get##name, , SHMEM_CTX_DEFAULT, type, nbytes, get)               \
    DEFINE_BLOCK_(shmem_##before##put##name##_nbi, , SHMEM_CTX_DEFAULT, type, nbytes, put_nbi)     \
    DEFINE_BLOCK_(shmem_##before##get##name##_nbi, , SHMEM_CTX_DEFAULT, type, nbytes, get_nbi)     \
    DEFINE_BLOCK_(shmem_ctx_##before##put##name, SHMEM_CTX_ARG_, ctx, type, nbytes, put)           \
    DEFINE_BLOCK_(shmem_ctx_##before##get##name, SHMEM_CTX_ARG_, ctx, type, nbytes, get)           \
    DEFINE_BLOCK_(shmem_ctx_##before##put##name##_nbi, SHMEM_CTX_ARG_, ctx, type, nbytes, put_nbi) \
    DEFINE_BLOCK_(shmem_ctx_##before##get##name##_nbi, SHMEM_CTX_ARG_, ctx, type, nbytes, get_nbi)

#define DEFINE_SIGNAL_(function, context, ctx, type, nbytes, transfer)                             \
    void function(context type *dest, const type *source, size_t nelems, uint64_t *sig_addr,       \
                  uint64_t signal, int sig_op, int pe) {                                           \
        transfer(__func__, ctx, dest, source, bytes_of(nelems, nbytes), sig_addr, signal, sig_op,  \
                 pe);                                                                              \
    }
#define DEFINE_SIGNALS_(before, name, type, nbytes)                                                \
    DEFINE_SIGNAL_(shmem_##before##put##name##_signal, , SHMEM_CTX_DEFAULT, type, nbytes,          \
                   put_signal)                                                                     \
    DEFINE_SIGNAL_(shmem_##before##put##name##_signal_nbi, , SHMEM_CTX_DEFAULT, type, nbytes,      \
                   put_signal_nbi)                                                                 \
    DEFINE_SIGNAL_(shmem_ctx_##before##put##name##_signal, SHMEM_CTX_ARG_, ctx, type, nbytes,      \
                   put_signal)                                                                     \
    DEFINE_SIGNAL_(shmem_ctx_##before##put##name##_signal_nbi, SHMEM_CTX_ARG_, ctx, type, nbytes,  \
                   put_signal_nbi)

#define DEFINE_STRIDED_(before, direction, name, context, ctx, type, nbytes)                       \
    void before##i##direction##name(context type *dest, const type *source, ptrdiff_t dst,         \
                                    ptrdiff_t sst, size_t nelems, int pe) {                        \
        direction##_blocks(__func__, ctx, dest, source,                                            \
                           check_blocks(__func__, nbytes, dst, sst, 1, nelems), pe);               \
    }                                                                                              \
    void before##ib##direction##name(context type *dest, const type *source, ptrdiff_t dst,        \
                                     ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) {        \
        direction##_blocks(__func__, ctx, dest, source,                                            \
                           check_blocks(__func__, nbytes, dst, sst, bsize, nblocks), pe);          \
    }
#define DEFINE_STRIDES_(before, name, type, nbytes)                                                \
    DEFINE_STRIDED_(shmem_##before, put, name, , SHMEM_CTX_DEFAULT, type, nbytes)                  \
    DEFINE_STRIDED_(shmem_##before, get, name, , SHMEM_CTX_DEFAULT, type, nbytes)                  \
    DEFINE_STRIDED_(shmem_ctx_##before, put, name, SHMEM_CTX_ARG_, ctx, type, nbytes)              \
    DEFINE_STRIDED_(shmem_ctx_##before, get, name, SHMEM_CTX_ARG_, ctx, type, nbytes)

#define DEFINE_SINGLE_(before, name, context, ctx, type)                                           \
    void before##name##_p(context type *dest, type value, int pe) {                                \
        put(__func__, ctx, dest, &value, sizeof(type), pe);                                        \
    }                                                                                              \
    type before##name##_g(context const type *source, int pe) {                                    \
        type value{};                                                                              \
        get(__func__, ctx, &value, source, sizeof(type), pe);                                      \
        return value;                                                                              \
    }

#define DEFINE_RMA_(name, type)                                                                    \
    DEFINE_BLOCKS_(name##_, , type, sizeof(type))                                                  \
    DEFINE_SIGNALS_(name##_, , type, sizeof(type))                                                 \
    DEFINE_STRIDES_(name##_, , type, sizeof(type))                                                 \
    DEFINE_SINGLE_(shmem_, name, , SHMEM_CTX_DEFAULT, type)                                        \
    DEFINE_SINGLE_(shmem_ctx_, name, SHMEM_CTX_ARG_, ctx, type)

#define DEFINE_SIZE_(bits, nbytes)                                                                 \
    DEFINE_BLOCKS_(, bits, void, nbytes)                                                           \
    DEFINE_SIGNALS_(, bits, void, nbytes)                                                          \
    DEFINE_STRIDES_(, bits, void, nbytes)

extern "C" {

SHMEM_RMA_TYPES_(DEFINE_RMA_)
SHMEM_SIZES_(DEFINE_SIZE_)
DEFINE_BLOCKS_(, mem, void, 1)
DEFINE_SIGNALS_(, mem, void, 1)

uint64_t shmem_signal_fetch(const uint64_t *sig_addr) {
    require_ready(__func__);
    check(__func__, ompx_progress());
    return __atomic_load_n(sig_addr, __ATOMIC_ACQUIRE);
}

void shmem_signal_add(uint64_t *sig_addr, uint64_t signal, int pe) {
    update_signal(__func__, SHMEM_CTX_DEFAULT, sig_addr, signal, OMPX_SUM, pe);
}

void shmem_ctx_signal_add(shmem_ctx_t ctx, uint64_t *sig_addr, uint64_t signal, int pe) {
    update_signal(__func__, ctx, sig_addr, signal, OMPX_SUM, pe);
}

void shmem_signal_set(uint64_t *sig_addr, uint64_t signal, int pe) {
    update_signal(__func__, SHMEM_CTX_DEFAULT, sig_addr, signal, OMPX_REPLACE, pe);
}

void shmem_ctx_signal_set(shmem_ctx_t ctx, uint64_t *sig_addr, uint64_t signal, int pe) {
    update_signal(__func__, ctx, sig_addr, signal, OMPX_REPLACE, pe);
}

} // extern "C"
