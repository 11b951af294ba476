/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * What core files would have of global memory, as the kernel tells it in smaps ("dd": do not dump).
 * The argument is the value of DIOMP_CORE. */
#include "support/check.h"

#include <stdint.h>

enum { MIB = 1 << 20 };

/* Bytes of segments that a core file would have, in [from, to). */
static size_t dumped_bytes(uintptr_t from, uintptr_t to) {
    FILE *const maps = fopen("/proc/self/smaps", "re");
    CHECK(maps != NULL);
    char line[512];
    uintptr_t begin = 0;
    uintptr_t end = 0;
    int is_ours = 0;
    size_t sum = 0;
    while (fgets(line, sizeof(line), maps) != NULL) {
        uintptr_t low = 0;
        uintptr_t high = 0;
        char minus = 0;
        if (sscanf(line, "%lx%c%lx ", &low, &minus, &high) == 3 && minus == '-') {
            begin = low;
            end = high;
            is_ours = strstr(line, "diomp-segment") != NULL;
        } else if (strncmp(line, "VmFlags:", 8) == 0 && is_ours && strstr(line, " dd") == NULL) {
            uintptr_t const first = begin > from ? begin : from;
            uintptr_t const last = end < to ? end : to;
            sum += last > first ? last - first : 0;
        }
    }
    fclose(maps);
    return sum;
}

static size_t dumped_of(const char *memory, size_t nbytes) {
    return dumped_bytes((uintptr_t)memory, (uintptr_t)memory + nbytes);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    const char *const core = argv[1];
    ompx_segment_info_t info;
    CHECK(ompx_segment_info(&info) == 0);
    uintptr_t const segment_begin = (uintptr_t)info.base;
    uintptr_t const segment_end = segment_begin + info.nbytes;
    char *const small = ompx_alloc(MIB / 2, 4096, OMPX_MEM_SYMMETRIC);
    char *const local = ompx_alloc(MIB / 2, 4096, OMPX_MEM_LOCAL);
    char *const large = ompx_alloc((size_t)64 * MIB, 4096, OMPX_MEM_SYMMETRIC);
    CHECK(small != NULL && local != NULL && large != NULL);

    size_t const all = dumped_bytes(0, UINTPTR_MAX);
    size_t const own = dumped_bytes(segment_begin, segment_end);
    int const has_small =
        dumped_of(small, MIB / 2) == MIB / 2 && dumped_of(local, MIB / 2) == MIB / 2;
    if (strcmp(core, "none") == 0) {
        CHECK(all == 0);
    } else if (strcmp(core, "16M") == 0) {
        CHECK(has_small);
        CHECK(own == 16 * MIB);
        CHECK(all == own);
    } else if (strcmp(core, "own") == 0) {
        CHECK(has_small);
        CHECK(dumped_of(large, (size_t)64 * MIB) == (size_t)64 * MIB);
        CHECK(own < (size_t)70 * MIB);
        CHECK(all == own);
    } else {
        CHECK(own == info.nbytes);
        CHECK(all > own);
    }
    CHECK(ompx_free(large) == 0);
    CHECK(ompx_free(small) == 0);
    CHECK(ompx_free(local) == 0);
    return 0;
}
