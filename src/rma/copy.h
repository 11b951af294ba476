// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Copies between a private buffer and directly mapped memory. This is the fast path of every
// transfer: no call, no lock, no allocation up to 64 bytes.
#pragma once

#include "base/sanitizer.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace diomp::rma {

/// A stream_threshold: each thread measures, by size, whether large copies are faster through the
/// caches or past them. That depends on the machine, on the placement of ranks and their memory,
/// and on the machine's other load.
inline constexpr std::size_t auto_threshold = 0;

/// Copies more than 64 bytes with memmove semantics: through the caches, or with streaming stores
/// from `stream_threshold` up. Returns 0 (OMPX_SUCCESS), so that a public call can end in a tail
/// call.
int copy_large(void *destination, const void *source, std::size_t nbytes,
               std::size_t stream_threshold) noexcept;

/// copy_large for puts. From 4 KiB up to where every copy is tuned, the thread also measures what
/// is fastest where the destination is none of its last ones: lines that are not in the core's own
/// cache would be read before they are written.
int copy_large_put(void *destination, const void *source, std::size_t nbytes,
                   std::size_t stream_threshold) noexcept;

/// Copies through the caches, with own loops up to the size where the library's memcpy is as fast.
/// Ranges must not overlap. Returns 0.
int copy_cached(void *destination, const void *source, std::size_t nbytes) noexcept;

/// Copies with non-temporal stores and waits until they are globally visible. Intended for large
/// blocks that would not stay in the cache of the destination's owner: the overwritten lines are
/// not read. Ranges must not overlap.
void copy_streaming(void *destination, const void *source, std::size_t nbytes);

/// Copies a source to several destinations in chunks, so that it is read from memory once. Ranges
/// must not overlap.
void copy_to_all(std::span<std::byte *const> destinations, const void *source, std::size_t nbytes,
                 bool streaming);

/// Selects the copy loops that are fastest on this processor, by measurements of some 100 us. Once
/// per process.
void calibrate_copies();

/// The crossover between cached copies and streaming stores, estimated from the cache sizes.
std::size_t default_stream_threshold();

namespace detail {

/// Copies 1, 2, 4 or 8 bytes with one load and one store, so that an aligned value never tears.
/// memcpy would leave the choice to the compiler. In terms of C++ these are relaxed atomic accesses
/// where the address is aligned, and they are written as such for the thread sanitizer.
template <typename Word>
inline void copy_word(void *destination, const void *source) {
#if DIOMP_THREAD_SANITIZER
    Word value;
    if (reinterpret_cast<std::uintptr_t>(source) % sizeof(Word) == 0) {
        value = __atomic_load_n(static_cast<const Word *>(source), __ATOMIC_RELAXED);
    } else {
        std::memcpy(&value, source, sizeof(value));
    }
    if (reinterpret_cast<std::uintptr_t>(destination) % sizeof(Word) == 0) {
        __atomic_store_n(static_cast<Word *>(destination), value, __ATOMIC_RELAXED);
    } else {
        std::memcpy(destination, &value, sizeof(value));
    }
#elif defined(__x86_64__) || defined(__aarch64__)
    // Both architectures allow unaligned single accesses; the attribute declares them.
    typedef Word unaligned __attribute__((aligned(1), may_alias));
    Word const value = *static_cast<const volatile unaligned *>(source);
    *static_cast<volatile unaligned *>(destination) = value;
#else
    Word value;
    std::memcpy(&value, source, sizeof(value));
    std::memcpy(destination, &value, sizeof(value));
#endif
}

/// Two possibly overlapping blocks cover any size from sizeof(Block) to twice that; both are loaded
/// before either is stored.
template <typename Block>
inline void copy_pair(void *destination, const void *source, std::size_t nbytes) {
    Block head;
    Block tail;
    std::memcpy(&head, source, sizeof(head));
    std::memcpy(&tail, static_cast<const char *>(source) + nbytes - sizeof(tail), sizeof(tail));
    std::memcpy(destination, &head, sizeof(head));
    std::memcpy(static_cast<char *>(destination) + nbytes - sizeof(tail), &tail, sizeof(tail));
}

// Vectors, so that the compiler keeps both blocks in registers.
typedef std::uint64_t block16 __attribute__((vector_size(16)));
typedef std::uint64_t block32 __attribute__((vector_size(32)));

// The sanitizers do not see into assembly.
#if defined(__x86_64__) && !DIOMP_THREAD_SANITIZER && !DIOMP_ADDRESS_SANITIZER
#define DIOMP_UPPER_REGISTERS 1
#else
#define DIOMP_UPPER_REGISTERS 0
#endif
#if DIOMP_UPPER_REGISTERS
/// Whether the processor has AVX-512VL, whose upper registers need no vzeroupper. False until set.
extern bool g_has_upper_registers;

/// Copies 32 to 64 bytes like copy_pair<block32>, in half as many accesses with AVX-512VL. Tested
/// at run time, since the library is compiled for any processor.
inline void copy_pair_of_32(void *destination, const void *source, std::size_t nbytes) {
    if (!g_has_upper_registers) [[unlikely]] {
        copy_pair<block32>(destination, source, nbytes);
        return;
    }
    asm volatile("vmovdqu64 (%[from]), %%ymm16\n\t"
                 "vmovdqu64 -32(%[from],%[nbytes]), %%ymm17\n\t"
                 "vmovdqu64 %%ymm16, (%[to])\n\t"
                 "vmovdqu64 %%ymm17, -32(%[to],%[nbytes])"
                 :
                 : [from] "r"(source), [to] "r"(destination), [nbytes] "r"(nbytes)
                 : "memory"
#if defined(__AVX512F__) // without it the compiler neither accepts nor uses them
                   ,
                   "xmm16", "xmm17"
#endif
    );
}
#else
inline void copy_pair_of_32(void *destination, const void *source, std::size_t nbytes) {
    copy_pair<block32>(destination, source, nbytes);
}
#endif

} // namespace detail

/// Copies with memmove semantics, more than 64 bytes by `CopyLarge`. Returns 0 (OMPX_SUCCESS).
template <auto CopyLarge = copy_large>
inline int copy_bytes(void *destination, const void *source, std::size_t nbytes,
                      std::size_t stream_threshold) {
    if (nbytes == 8) {
        detail::copy_word<std::uint64_t>(destination, source);
    } else if (nbytes - 33 < 32) { // early, since longer copies take more time anyway
        detail::copy_pair_of_32(destination, source, nbytes);
    } else if (nbytes > 64) {
        return CopyLarge(destination, source, nbytes, stream_threshold);
    } else if (nbytes > 16) {
        detail::copy_pair<detail::block16>(destination, source, nbytes);
    } else if (nbytes > 8) {
        detail::copy_pair<std::uint64_t>(destination, source, nbytes);
    } else if (nbytes == 4) {
        detail::copy_word<std::uint32_t>(destination, source);
    } else if (nbytes > 4) {
        detail::copy_pair<std::uint32_t>(destination, source, nbytes);
    } else if (nbytes == 2) {
        detail::copy_word<std::uint16_t>(destination, source);
    } else if (nbytes == 1) {
        detail::copy_word<std::uint8_t>(destination, source);
    } else if (nbytes == 3) {
        detail::copy_pair<std::uint16_t>(destination, source, nbytes);
    }
    return 0;
}

/// copy_bytes to memory that another rank reads. Returns 0.
inline int put_bytes(void *destination, const void *source, std::size_t nbytes,
                     std::size_t stream_threshold) {
    return copy_bytes<copy_large_put>(destination, source, nbytes, stream_threshold);
}

/// Full memory fence: earlier stores are visible to all ranks before later loads execute, so that a
/// put followed by a fence and a get is not reordered. A locked operation is as strong as mfence
/// here and four times as fast (streaming copies have waited for their own stores). Its operand is
/// a cache line that this core owns, but not the word that the call has just pushed: waiting for
/// that store costs 3 ns more.
inline void full_fence() {
#if defined(__x86_64__)
    asm volatile("lock; orl $0, -64(%%rsp)" ::: "memory", "cc");
#else
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

} // namespace diomp::rma
