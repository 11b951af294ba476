// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Collectives over teams and active sets, which are groups of ranks.
#define SHMEM_DEFINE_UNTYPED_
#include "shmem/collectives.h"

#include "library.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>

using namespace diomp_shmem;

namespace {

/// The group of a team; OMPX_GROUP_NONE, which no call accepts, for an invalid one.
ompx_group_t group_of(const char *function, shmem_team_t handle) {
    require_ready(function);
    team *const members = team_of(handle);
    return members == nullptr ? OMPX_GROUP_NONE : members->group;
}

/// The result of team functions. Errors that DiOMP returns are the program's to handle.
int outcome(int status) { return status < 0 ? status : 0; }

int broadcast(ompx_group_t group, void *dest, const void *source, std::size_t nbytes, int root,
              bool root_copies) {
    if (ompx_group_rank(group) != root) {
        return ompx_bcast_from(dest, nbytes, root, group);
    }
    int const status = ompx_bcast_from(const_cast<void *>(source), nbytes, root, group);
    if (status >= 0 && root_copies && nbytes > 0 && dest != source) {
        std::memmove(dest, source, nbytes);
    }
    return status;
}

int fcollect(ompx_group_t group, void *dest, const void *source, std::size_t nbytes) {
    return ompx_allgather(dest, source, nbytes, group);
}

/// The size of a PE's block, and the block itself if it is short: as many bytes as a barrier
/// carries.
struct block_note {
    std::size_t nbytes = 0;
    std::byte bytes[32]{};

    [[nodiscard]] bool is_whole() const { return nbytes <= sizeof(bytes); }
};

/// Memory for n elements, on the stack for the usual few PEs.
template <typename T>
class per_pe {
public:
    explicit per_pe(std::size_t n) : n_(n), many_(n > few_.size() ? n : 0) {}
    T *data() { return many_.empty() ? few_.data() : many_.data(); }
    T *begin() { return data(); }
    T *end() { return data() + n_; }

private:
    std::size_t n_;
    std::array<T, 16> few_{};
    std::vector<T> many_;
};

void copy_short_blocks(per_pe<block_note> &notes, std::byte *dest) {
    for (block_note const &each : notes) {
        std::memcpy(dest, each.bytes, each.nbytes);
        dest += each.nbytes;
    }
}

int collect(ompx_group_t group, void *dest, const void *source, std::size_t nbytes) {
    int const size = ompx_group_size(group);
    if (size < 0) {
        return size;
    }
    per_pe<block_note> notes(static_cast<std::size_t>(size));
    block_note own{nbytes};
    if (nbytes > 0 && own.is_whole()) {
        std::memcpy(own.bytes, source, nbytes);
    }
    int const status = ompx_allgather(notes.data(), &own, sizeof(own), group);
    if (status < 0) {
        return status;
    }
    if (std::all_of(notes.begin(), notes.end(), std::mem_fn(&block_note::is_whole))) {
        copy_short_blocks(notes, static_cast<std::byte *>(dest));
        return 0;
    }
    auto const is_equal = [&](const block_note &each) { return each.nbytes == nbytes; };
    if (std::all_of(notes.begin(), notes.end(), is_equal)) {
        return ompx_allgather(dest, source, nbytes, group);
    }
    per_pe<std::size_t> sizes(static_cast<std::size_t>(size));
    std::transform(notes.begin(), notes.end(), sizes.begin(), std::mem_fn(&block_note::nbytes));
    return ompx_allgatherv(dest, sizes.data(), nullptr, source, group);
}

int alltoall(ompx_group_t group, void *dest, const void *source, std::size_t nbytes) {
    return ompx_alltoall(dest, source, nbytes, group);
}

/// Copies count elements between arrays whose elements are `stride` bytes apart.
void copy_strided(void *dest, std::size_t dest_stride, const void *source,
                  std::size_t source_stride, std::size_t element, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        std::memcpy(static_cast<std::byte *>(dest) + i * dest_stride,
                    static_cast<const std::byte *>(source) + i * source_stride, element);
    }
}

int alltoalls(ompx_group_t group, void *dest, const void *source, std::ptrdiff_t dst,
              std::ptrdiff_t sst, std::size_t nelems, std::size_t element) {
    int const size = ompx_group_size(group);
    if (size < 0 || dst < 1 || sst < 1) {
        return size < 0 ? size : OMPX_ERR_ARG;
    }
    std::size_t const count = bytes_of(nelems, static_cast<std::size_t>(size));
    auto const distance = static_cast<std::size_t>(std::max(dst, sst));
    if (bytes_of(bytes_of(count, element), distance) == SIZE_MAX) {
        return ompx_alltoall(dest, source, SIZE_MAX, group); // its error, on all PEs
    }
    std::vector<std::byte> packed(count * element + 1); // never empty, since a buffer is not NULL
    std::vector<std::byte> received(count * element + 1);
    copy_strided(packed.data(), element, source, static_cast<std::size_t>(sst) * element, element,
                 count);
    int const status = ompx_alltoall(received.data(), packed.data(), nelems * element, group);
    if (status >= 0) {
        copy_strided(dest, static_cast<std::size_t>(dst) * element, received.data(), element,
                     element, count);
    }
    return status;
}

template <typename T>
int reduce(ompx_group_t group, T *dest, const T *source, std::size_t count, ompx_op_t op) {
    return ompx_allreduce(dest, source, count, type_of<T>(), op, group);
}

template <typename T>
int scan(ompx_group_t group, T *dest, const T *source, std::size_t count, bool is_inclusive) {
    if (is_inclusive) {
        return ompx_scan(dest, source, count, type_of<T>(), OMPX_SUM, group);
    }
    int const status = ompx_exscan(dest, source, count, type_of<T>(), OMPX_SUM, group);
    if (status >= 0 && ompx_group_rank(group) == 0 && count > 0) {
        std::memset(static_cast<void *>(dest), 0, count * sizeof(T));
    }
    return status;
}

} // namespace

#define DEFINE_TEAM_FORMS_(before, after, type, nbytes)                                            \
    int before##broadcast##after(shmem_team_t team, type *dest, const type *source, size_t nelems, \
                                 int PE_root) {                                                    \
        return outcome(broadcast(group_of(__func__, team), dest, source, bytes_of(nelems, nbytes), \
                                 PE_root, true));                                                  \
    }                                                                                              \
    DEFINE_TEAM_FORM_(before##collect##after, collect, type, nbytes)                               \
    DEFINE_TEAM_FORM_(before##fcollect##after, fcollect, type, nbytes)                             \
    DEFINE_TEAM_FORM_(before##alltoall##after, alltoall, type, nbytes)                             \
    int before##alltoalls##after(shmem_team_t team, type *dest, const type *source, ptrdiff_t dst, \
                                 ptrdiff_t sst, size_t nelems) {                                   \
        return outcome(                                                                            \
            alltoalls(group_of(__func__, team), dest, source, dst, sst, nelems, nbytes));          \
    }
#define DEFINE_TEAM_FORM_(function, collective, type, nbytes)                                      \
    int function(shmem_team_t team, type *dest, const type *source, size_t nelems) {               \
        return outcome(                                                                            \
            collective(group_of(__func__, team), dest, source, bytes_of(nelems, nbytes)));         \
    }
#define DEFINE_TYPED_(name, type) DEFINE_TEAM_FORMS_(shmem_##name##_, , type, sizeof(type))

// The arguments of an active set, and its group.
#define SET_GROUP_ active_set(__func__, PE_start, logPE_stride, PE_size)
#define DEFINE_SET_FORMS_(bits, nbytes)                                                            \
    void shmem_broadcast##bits(void *dest, const void *source, size_t nelems, int PE_root,         \
                               SHMEM_SET_ARGS_, long *) {                                          \
        check(__func__,                                                                            \
              broadcast(SET_GROUP_, dest, source, bytes_of(nelems, nbytes), PE_root, false));      \
    }                                                                                              \
    DEFINE_SET_FORM_(shmem_collect##bits, collect, nbytes)                                         \
    DEFINE_SET_FORM_(shmem_fcollect##bits, fcollect, nbytes)                                       \
    DEFINE_SET_FORM_(shmem_alltoall##bits, alltoall, nbytes)                                       \
    void shmem_alltoalls##bits(void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst,       \
                               size_t nelems, SHMEM_SET_ARGS_, long *) {                           \
        check(__func__, alltoalls(SET_GROUP_, dest, source, dst, sst, nelems, nbytes));            \
    }
#define DEFINE_SET_FORM_(function, collective, nbytes)                                             \
    void function(void *dest, const void *source, size_t nelems, SHMEM_SET_ARGS_, long *) {        \
        check(__func__, collective(SET_GROUP_, dest, source, bytes_of(nelems, nbytes)));           \
    }

#define DEFINE_REDUCE_(name, type, operation, op)                                                  \
    int shmem_##name##_##operation##_reduce(shmem_team_t team, type *dest, const type *source,     \
                                            size_t nelems) {                                       \
        return outcome(reduce<type>(group_of(__func__, team), dest, source, nelems, op));          \
    }
#define DEFINE_SCAN_(name, type, operation, is_inclusive)                                          \
    int shmem_##name##_sum_##operation(shmem_team_t team, type *dest, const type *source,          \
                                       size_t nelems) {                                            \
        return outcome(scan<type>(group_of(__func__, team), dest, source, nelems, is_inclusive));  \
    }
#define DEFINE_BITS_(name, type)                                                                   \
    DEFINE_REDUCE_(name, type, and, OMPX_BAND)                                                     \
    DEFINE_REDUCE_(name, type, or, OMPX_BOR)                                                       \
    DEFINE_REDUCE_(name, type, xor, OMPX_BXOR)
#define DEFINE_ORDER_(name, type)                                                                  \
    DEFINE_REDUCE_(name, type, min, OMPX_MIN)                                                      \
    DEFINE_REDUCE_(name, type, max, OMPX_MAX)
#define DEFINE_SUM_(name, type)                                                                    \
    DEFINE_REDUCE_(name, type, sum, OMPX_SUM)                                                      \
    DEFINE_REDUCE_(name, type, prod, OMPX_PROD)                                                    \
    DEFINE_SCAN_(name, type, inscan, true)                                                         \
    DEFINE_SCAN_(name, type, exscan, false)

#define DEFINE_TO_ALL_(name, type, operation, op)                                                  \
    void shmem_##name##_##operation##_to_all(type *dest, const type *source, int nreduce,          \
                                             SHMEM_SET_ARGS_, type *, long *) {                    \
        check(__func__, reduce<type>(SET_GROUP_, dest, source, static_cast<size_t>(nreduce), op)); \
    }
#define DEFINE_TO_ALL_BITS_(name, type)                                                            \
    DEFINE_TO_ALL_(name, type, and, OMPX_BAND)                                                     \
    DEFINE_TO_ALL_(name, type, or, OMPX_BOR)                                                       \
    DEFINE_TO_ALL_(name, type, xor, OMPX_BXOR)
#define DEFINE_TO_ALL_ORDER_(name, type)                                                           \
    DEFINE_TO_ALL_(name, type, min, OMPX_MIN)                                                      \
    DEFINE_TO_ALL_(name, type, max, OMPX_MAX)
#define DEFINE_TO_ALL_SUM_(name, type)                                                             \
    DEFINE_TO_ALL_(name, type, sum, OMPX_SUM)                                                      \
    DEFINE_TO_ALL_(name, type, prod, OMPX_PROD)

extern "C" {

void shmem_barrier_all(void) {
    require_ready(__func__);
    check(__func__, ompx_barrier_group(ompx_group_world));
}

void shmem_sync_all(void) {
    require_ready(__func__);
    check(__func__, ompx_sync(ompx_group_world));
}

int shmem_team_sync(shmem_team_t team) { return outcome(ompx_sync(group_of(__func__, team))); }

void shmem_barrier(SHMEM_SET_ARGS_, long *) {
    ompx_group_t const group = SET_GROUP_;
    check(__func__, ompx_fence_group(ompx_group_world));
    check(__func__, ompx_sync(group));
}

void shmem_sync(SHMEM_SET_ARGS_, long *) { check(__func__, ompx_sync(SET_GROUP_)); }

void shmem_sync_set_(int PE_start, int logPE_stride, int PE_size, long *pSync) {
    shmem_sync(PE_start, logPE_stride, PE_size, pSync);
}

SHMEM_RMA_TYPES_(DEFINE_TYPED_)
DEFINE_TEAM_FORMS_(shmem_, mem, void, 1)
SHMEM_SET_SIZES_(DEFINE_SET_FORMS_)
SHMEM_REDUCE_BITS_TYPES_(DEFINE_BITS_)
SHMEM_REDUCE_ORDER_TYPES_(DEFINE_ORDER_)
SHMEM_REDUCE_SUM_TYPES_(DEFINE_SUM_)
SHMEM_TO_ALL_BITS_TYPES_(DEFINE_TO_ALL_BITS_)
SHMEM_TO_ALL_ORDER_TYPES_(DEFINE_TO_ALL_ORDER_)
SHMEM_TO_ALL_SUM_TYPES_(DEFINE_TO_ALL_SUM_)

} // extern "C"
