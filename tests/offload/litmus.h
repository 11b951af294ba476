/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * Litmus tests of the order of memory that docs/device-calls.md promises to calls in target
 * regions. C and C++; on any device. A test has up to four roles, each a thread that makes calls;
 * per iteration they start together, make a few puts, gets, fences and signals, and keep what they
 * saw. litmus_forbids() says whether the model forbids what the roles of an iteration saw.
 *
 * The including program defines before the include:
 *   litmus_by                                        what a call needs, such as an endpoint
 *   litmus_put, litmus_get, litmus_fence, litmus_put_signal, litmus_signal_wait, litmus_flag_wait
 *                                                    the calls
 *   litmus_is_mapped(by, address, rank)              whether the device loads and stores it */
#ifndef DIOMP_TESTS_OFFLOAD_LITMUS_H
#define DIOMP_TESTS_OFFLOAD_LITMUS_H

#include <stdint.h>
#include <stdio.h>

enum litmus_test {
    LITMUS_PAYLOAD = 0,  /* a put with signal; the other one waits and reads the data */
    LITMUS_FENCE_SIGNAL, /* put, fence, signal */
    LITMUS_PUT_SIGNAL,   /* put, signal: no fence where the device stores the memory itself */
    LITMUS_FLAG,         /* put, fence, put of a flag that the other one waits for */
    LITMUS_GETS,         /* put, fence, put of a flag; the other one gets the flag, then the data */
    LITMUS_STORES,       /* store buffering: each puts one word, fences, and gets the other word */
    LITMUS_CHAIN,        /* put, fence, signal to a second one, which signals a third one */
    LITMUS_READS,        /* independent reads of independent writes, a fence between the reads */
    LITMUS_TESTS
};

enum { LITMUS_ROLES = 4, LITMUS_BATCH = 10, LITMUS_MAX_WORDS = 1024, LITMUS_CELLS = 64 };

/* Of each rank's memory, in words; what different roles write is 128 bytes apart. */
enum {
    LITMUS_STARTED = 0, /* [to role][from role] */
    LITMUS_SIGNALS = LITMUS_STARTED + LITMUS_ROLES * LITMUS_ROLES * 16,
    LITMUS_X = LITMUS_SIGNALS + 2 * 16,
    LITMUS_Y = LITMUS_X + LITMUS_CELLS * 16,
    LITMUS_DATA = LITMUS_Y + LITMUS_CELLS * 16,
    LITMUS_SOURCE = LITMUS_DATA + LITMUS_MAX_WORDS,
    LITMUS_WORDS = LITMUS_SOURCE + LITMUS_MAX_WORDS
};

/* LITMUS_BATCH iterations of one test. Words have the number of the iteration that wrote them. */
struct litmus_batch {
    int test; /* enum litmus_test */
    int num_roles;
    int rank_of[LITMUS_ROLES];
    int home_x; /* rank whose words X and DATA are used; of DATA only in LITMUS_GETS */
    int home_y;
    int num_words;  /* of the data */
    uint64_t first; /* number of the first iteration, at least 1 */
};

/* What a role has seen in the iterations of a batch: the number that a signal or flag had, and that
 * of the data; in LITMUS_READS the cells (bits) whose first and second get returned this
 * iteration's number, as those that were not used have; in LITMUS_STORES the cells whose get did,
 * and those that were used. */
struct litmus_seen {
    uint64_t value[LITMUS_BATCH][2];
};

static inline int litmus_num_roles(int test) {
    return test == LITMUS_READS ? 4 : test == LITMUS_CHAIN ? 3 : 2;
}

/* ---- Roles ---- */

/* The roles of an iteration start when all have come. */
static inline int litmus_start(litmus_by by, const struct litmus_batch *of, int role,
                               uint64_t *memory, uint64_t number) {
    uint32_t volatile idle = 0;
    uint32_t const turns = (uint32_t)((number * 0x9e3779b97f4a7c15u + (uint64_t)role) >> 57);
    int status = 0;
    for (int other = 0; other < of->num_roles; ++other) {
        if (other != role) {
            status |= litmus_put_signal(
                by, of->rank_of[other], 0, 0, 0,
                &memory[LITMUS_STARTED + (other * LITMUS_ROLES + role) * 16], number);
        }
    }
    for (int other = 0; other < of->num_roles && status == 0; ++other) {
        if (other != role) {
            status = litmus_signal_wait(
                by, &memory[LITMUS_STARTED + (role * LITMUS_ROLES + other) * 16], number);
        }
    }
    /* Waits may have slept, so the roles come closer by stores and loads, if that is soon. */
    for (int other = 0; other < of->num_roles && status == 0; ++other) {
        if (other != role && litmus_is_mapped(by, memory, of->rank_of[other])) {
            status = litmus_put(by, of->rank_of[other],
                                &memory[LITMUS_STARTED + (other * LITMUS_ROLES + role) * 16 + 8],
                                &number, sizeof(number));
        }
    }
    for (int other = 0; other < of->num_roles; ++other) {
        const volatile uint64_t *const near =
            &memory[LITMUS_STARTED + (role * LITMUS_ROLES + other) * 16 + 8];
        for (int i = 0; i < 2000 && other != role && *near < number; ++i) {
        }
    }
    for (uint32_t i = 0; i < turns * (1 + (uint32_t)role % 2); ++i) {
        idle = i; /* up to some 100 ns, so that all orders of the roles occur */
    }
    (void)idle;
    return status;
}

/* The first word of the data that is not `number`; otherwise `number`. */
static inline uint64_t litmus_read(const uint64_t *data, int num_words, uint64_t number) {
    for (int i = 0; i < num_words; ++i) {
        uint64_t const word = *(const volatile uint64_t *)&data[i];
        if (word != number) {
            return word;
        }
    }
    return number;
}

static inline int litmus_write(litmus_by by, const struct litmus_batch *of, uint64_t *memory,
                               uint64_t number) {
    uint64_t *const data = &memory[LITMUS_DATA];
    uint64_t *const source = &memory[LITMUS_SOURCE];
    uint64_t *const signal = &memory[LITMUS_SIGNALS];
    uint64_t const nbytes = (uint64_t)of->num_words * 8;
    int const to = of->test == LITMUS_GETS ? of->home_x : of->rank_of[1];
    int status;
    for (int i = 0; i < of->num_words; ++i) {
        source[i] = number;
    }
    if (of->test == LITMUS_PAYLOAD) {
        return litmus_put_signal(by, to, data, source, nbytes, signal, number);
    }
    status = litmus_put(by, to, data, source, nbytes);
    if (of->test != LITMUS_PUT_SIGNAL || !litmus_is_mapped(by, data, to)) {
        status |= litmus_fence(by);
    }
    if (of->test == LITMUS_FLAG || of->test == LITMUS_GETS) {
        return status | litmus_put(by, to, &memory[LITMUS_X], &number, sizeof(number));
    }
    return status | litmus_put_signal(by, to, 0, 0, 0, signal, number);
}

static inline int litmus_see(litmus_by by, const struct litmus_batch *of, uint64_t *memory,
                             uint64_t number, uint64_t seen[2]) {
    uint64_t copy[5];
    int status = 0;
    if (of->test == LITMUS_GETS) {
        /* Without a fence a GPU may load the data first. */
        for (int i = 0; i < 20 && status == 0 && seen[0] != number; ++i) {
            status = litmus_get(by, &seen[0], of->home_x, &memory[LITMUS_X], sizeof(seen[0]));
        }
        if (status != 0 || seen[0] != number) {
            return status;
        }
        status = litmus_fence(by);
        status |= litmus_get(by, copy, of->home_x, &memory[LITMUS_DATA], sizeof(copy));
        seen[1] = litmus_read(copy, of->num_words < 5 ? of->num_words : 5, number);
        return status;
    }
    status = of->test == LITMUS_FLAG ? litmus_flag_wait(by, &memory[LITMUS_X], number)
                                     : litmus_signal_wait(by, &memory[LITMUS_SIGNALS], number);
    seen[0] = number;
    seen[1] = litmus_read(&memory[LITMUS_DATA], of->num_words, number);
    return status;
}

/* Cells of an iteration: the roles overlap in most of them if the accesses are fast. */
static inline int litmus_num_cells(litmus_by by, const struct litmus_batch *of,
                                   const uint64_t *memory) {
    return litmus_is_mapped(by, memory, of->home_x) && litmus_is_mapped(by, memory, of->home_y)
               ? LITMUS_CELLS
               : 3;
}

/* Puts cell after cell of X, or in the second role of Y; in LITMUS_STORES gets the other word. */
static inline int litmus_put_cells(litmus_by by, const struct litmus_batch *of, int role,
                                   uint64_t *memory, uint64_t number, uint64_t seen[2]) {
    uint64_t *const to = &memory[role == 0 ? LITMUS_X : LITMUS_Y];
    uint64_t *const from = &memory[role == 0 ? LITMUS_Y : LITMUS_X];
    int const to_rank = role == 0 ? of->home_x : of->home_y;
    int const from_rank = role == 0 ? of->home_y : of->home_x;
    int const num_cells = litmus_num_cells(by, of, memory);
    int status = 0;
    seen[0] = ~(uint64_t)0;
    for (int i = 0; i < num_cells; ++i) {
        uint64_t word = 0;
        status |= litmus_put(by, to_rank, &to[16 * i], &number, sizeof(number));
        if (of->test == LITMUS_STORES) {
            status |= litmus_fence(by);
            status |= litmus_get(by, &word, from_rank, &from[16 * i], sizeof(word));
            seen[0] ^= (uint64_t)(word != number) << i;
            seen[1] |= (uint64_t)1 << i;
        }
    }
    return status;
}

/* Gets both words of each cell, role 2 first X, role 3 first Y. */
static inline int litmus_get_cells(litmus_by by, const struct litmus_batch *of, int role,
                                   uint64_t *memory, uint64_t number, uint64_t seen[2]) {
    int const num_cells = litmus_num_cells(by, of, memory);
    int status = 0;
    seen[0] = seen[1] = ~(uint64_t)0;
    for (int i = 0; i < num_cells; ++i) {
        for (int second = 0; second < 2; ++second) {
            int const of_x = (role == 2) == (second == 0);
            uint64_t word = 0;
            status |= litmus_get(by, &word, of_x ? of->home_x : of->home_y,
                                 &memory[(of_x ? LITMUS_X : LITMUS_Y) + 16 * i], sizeof(word));
            status |= litmus_fence(by);
            seen[second] ^= (uint64_t)(word != number) << i;
        }
    }
    return status;
}

static inline int litmus_chain(litmus_by by, const struct litmus_batch *of, int role,
                               uint64_t *memory, uint64_t number, uint64_t seen[2]) {
    uint64_t *const x = &memory[LITMUS_X];
    uint64_t *const signals = &memory[LITMUS_SIGNALS];
    int status;
    if (role == 0) {
        status = litmus_put(by, of->rank_of[2], x, &number, sizeof(number));
        status |= litmus_fence(by);
        return status | litmus_put_signal(by, of->rank_of[1], 0, 0, 0, &signals[0], number);
    }
    if (role == 1) {
        status = litmus_signal_wait(by, &signals[0], number);
        return status | litmus_put_signal(by, of->rank_of[2], 0, 0, 0, &signals[16], number);
    }
    status = litmus_signal_wait(by, &signals[16], number);
    seen[0] = number;
    seen[1] = litmus_read(x, 1, number);
    return status;
}

static inline int litmus_iteration(litmus_by by, const struct litmus_batch *of, int role,
                                   uint64_t *memory, uint64_t number, uint64_t seen[2]) {
    switch (of->test) {
    case LITMUS_CHAIN:
        return litmus_chain(by, of, role, memory, number, seen);
    case LITMUS_STORES:
    case LITMUS_READS:
        return role < 2 ? litmus_put_cells(by, of, role, memory, number, seen)
                        : litmus_get_cells(by, of, role, memory, number, seen);
    default:
        return role == 0 ? litmus_write(by, of, memory, number)
                         : litmus_see(by, of, memory, number, seen);
    }
}

/* All iterations of a batch in one role. `memory`: LITMUS_WORDS words at equal addresses of all
 * ranks, 0 at first. Returns a status. */
static inline int litmus_role(litmus_by by, const struct litmus_batch *of, int role,
                              uint64_t *memory, struct litmus_seen *all) {
    int status = 0;
    for (int i = 0; i < LITMUS_BATCH && status == 0; ++i) {
        uint64_t const number = of->first + (uint64_t)i;
        uint64_t seen[2] = {0, 0};
        status = litmus_start(by, of, role, memory, number);
        if (status == 0) {
            status = litmus_iteration(by, of, role, memory, number, seen);
        }
        status |= litmus_fence(by); /* the next iteration finds this one's words */
        all->value[i][0] = seen[0];
        all->value[i][1] = seen[1];
    }
    return status;
}

/* ---- What the roles saw ---- */

static inline const char *litmus_name(int test) {
    static const char *const names[LITMUS_TESTS] = {
        "put with signal",
        "message passing (put, fence, signal)",
        "message passing (put, signal)",
        "message passing (put, fence, flag)",
        "message passing (put, fence, flag; get, fence, get)",
        "store buffering",
        "message passing over a third one",
        "independent reads of independent writes"};
    return names[test];
}

/* Cells (bits) with an outcome that the model forbids, in LITMUS_STORES and LITMUS_READS. */
static inline uint64_t litmus_forbidden_cells(const struct litmus_batch *of,
                                              const struct litmus_seen *seen, int i) {
    const uint64_t *const x_first = seen[2].value[i];
    const uint64_t *const y_first = seen[3].value[i];
    return of->test == LITMUS_STORES ? ~(seen[0].value[i][0] | seen[1].value[i][0])
                                     : x_first[0] & ~x_first[1] & y_first[0] & ~y_first[1];
}

/* 1 if the model forbids what the roles saw in iteration i of a batch; text[length] then receives
 * the outcome. */
static inline int litmus_forbids(const struct litmus_batch *of, const struct litmus_seen *seen,
                                 int i, char *text, size_t length) {
    uint64_t const number = of->first + (uint64_t)i;
    const uint64_t *const last = seen[of->num_roles - 1].value[i];
    char outcome[160];
    if (of->test == LITMUS_STORES || of->test == LITMUS_READS) {
        uint64_t const cells = litmus_forbidden_cells(of, seen, i);
        if (cells == 0) {
            return 0;
        }
        snprintf(outcome, sizeof(outcome), "cells %#llx: %s", (unsigned long long)cells,
                 of->test == LITMUS_STORES
                     ? "neither get returned the word that the other role had put before"
                     : "one reader saw only x, the other one only y");
    } else if (last[0] < number || last[1] == number) {
        return 0;
    } else {
        snprintf(outcome, sizeof(outcome),
                 "saw the signal or flag %llu, but a word of the data %llu",
                 (unsigned long long)last[0], (unsigned long long)last[1]);
    }
    snprintf(text, length,
             "%s: forbidden outcome in iteration %llu: %s (%d words; roles at ranks %d %d %d %d, x "
             "at %d, y at %d)",
             litmus_name(of->test), (unsigned long long)number, outcome, of->num_words,
             of->rank_of[0], of->rank_of[1], of->num_roles > 2 ? of->rank_of[2] : -1,
             of->num_roles > 3 ? of->rank_of[3] : -1, of->home_x, of->home_y);
    return 1;
}

/* How often the roles overlapped, as far as what they saw shows it: only then is an outcome of
 * these tests worth something. */
static inline int litmus_overlapped(const struct litmus_batch *of, const struct litmus_seen *seen,
                                    int i) {
    switch (of->test) {
    case LITMUS_STORES: /* both saw the other's word */
        return __builtin_popcountll(seen[0].value[i][0] & seen[0].value[i][1] &
                                    seen[1].value[i][0] & seen[1].value[i][1]);
    case LITMUS_READS: /* a write came between the gets of a reader */
        return __builtin_popcountll((seen[2].value[i][0] ^ seen[2].value[i][1]) |
                                    (seen[3].value[i][0] ^ seen[3].value[i][1]));
    case LITMUS_GETS:
        return seen[1].value[i][0] == of->first + (uint64_t)i;
    default:
        return 1;
    }
}

/* The n-th batch of a test on `ranks` ranks: roles and words change places. */
static inline struct litmus_batch litmus_nth_batch(int test, int n, int ranks, uint64_t first) {
    static const int words[] = {5, LITMUS_MAX_WORDS, 1, 32};
    int const stride = n / 6 % 3 == 2 ? 2 : 1; /* 2: on two ranks both roles are on one */
    struct litmus_batch made = {test, litmus_num_roles(test), {0},  0,
                                0,    words[(n + n / 4) % 4], first};
    for (int role = 0; role < LITMUS_ROLES; ++role) {
        made.rank_of[role] = (role * stride + n) % ranks;
    }
    made.home_x = made.rank_of[n / 2 % made.num_roles];
    made.home_y = made.rank_of[n / 4 % made.num_roles];
    return made;
}

#endif
