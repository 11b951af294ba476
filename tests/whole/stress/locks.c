/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * A record on every rank that only the holder of the rank's lock changes: whole or not at all. */
#include "stress.h"

#include <string.h>

enum { RECORD = 512 };

static unsigned char *record; /* symmetric; a number and the bytes that belong to it */

void locks_begin(void) {
    record = need(ompx_alloc(RECORD, 0, OMPX_MEM_SYMMETRIC));
    memset(record, 0, RECORD);
}

static void write_record(random_source *from, int target, unsigned char *text) {
    uint64_t const number = draw(from) | 1;
    memcpy(text, &number, sizeof number);
    fill(text + sizeof number, RECORD - sizeof number, number);
    if (draw_below(from, 2)) {
        SUCCEEDS(ompx_put(target, record, text, RECORD));
        return;
    }
    ompx_event_t event;
    SUCCEEDS(ompx_put_nb(target, record, text, RECORD / 2, &event));
    SUCCEEDS(ompx_put(target, record + RECORD / 2, text + RECORD / 2, RECORD / 2));
    SUCCEEDS(ompx_event_wait(&event));
}

void locks_work(random_source *from, int operations) {
    for (int i = 0; i < operations; ++i) {
        int const target = (int)draw_below(from, (size_t)job.ranks);
        unsigned char found[RECORD];
        unsigned char expected[RECORD];
        if (draw_below(from, 8) == 0) {
            int const status = ompx_try_lockt(target);
            if (status == OMPX_ERR_BUSY) {
                continue;
            }
            SUCCEEDS(status);
        } else {
            SUCCEEDS(ompx_lockt(target));
        }
        SUCCEEDS(ompx_get(found, target, record, RECORD));
        uint64_t number = 0;
        memcpy(&number, found, sizeof number);
        memcpy(expected, &number, sizeof number);
        fill(expected + sizeof number, RECORD - sizeof number, number);
        REQUIRE(number == 0 || memcmp(found, expected, RECORD) == 0,
                "the record of rank %d is torn", target);
        write_record(from, target, found);
        SUCCEEDS(ompx_unlockt(target));
    }
}
