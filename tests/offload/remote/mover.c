/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * usage: mover LIBDIOMP    moves data with all remote devices as libomptarget's plugin does,
 * without an image: devices that can run none of this program's will do. */
#include "offload/remote_table.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { large = 3 << 20, small = 100, most_devices = 4 };

static const struct diomp_remote_table *table;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s (%s)\n", __FILE__, __LINE__, #condition,            \
                    table ? table->failure() : "");                                                \
            _Exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static unsigned char *pattern(unsigned seed) {
    unsigned char *const bytes = malloc(large);
    for (size_t i = 0; i < large; ++i) {
        bytes[i] = (unsigned char)(i * 2654435761U >> 13 ^ seed * 97 ^ i);
    }
    return bytes;
}

/* Large and small ones in one queue, which overlap. */
static void there_and_back(int device, uint64_t memory) {
    unsigned char *const bytes = pattern((unsigned)device);
    unsigned char *const back = calloc(1, large);
    unsigned char part[small], mark[small];
    memset(mark, 0xee, small);
    void *const queue = table->queue(device);
    CHECK(table->put(queue, memory, bytes, large) == 0);
    CHECK(table->put(queue, memory + 50, mark, small) == 0);
    CHECK(table->get(queue, part, memory + 40, small) == 0);
    CHECK(table->get(queue, back, memory, large) == 0);
    CHECK(table->put(queue, memory, bytes, large) == 0);
    CHECK(table->wait(queue) == 0);
    CHECK(memcmp(part, bytes + 40, 10) == 0 && memcmp(part + 10, mark, small - 10) == 0);
    CHECK(memcmp(back, bytes, 50) == 0 && memcmp(back + 50, mark, small) == 0);
    CHECK(memcmp(back + 150, bytes + 150, large - 150) == 0);
    void *const last = table->queue(device);
    CHECK(table->get(last, back + 1, memory + 1, large - 2) == 0);
    CHECK(table->wait(last) == 0);
    CHECK(memcmp(back + 1, bytes + 1, large - 2) == 0);
    free(bytes);
    free(back);
}

/* A queue that waits for another one's large get does not overwrite what is still to be read. */
static void get_before_another_queue(int device, uint64_t memory) {
    unsigned char *const before = pattern(50);
    unsigned char *const after = pattern(51);
    unsigned char *const back = calloc(1, large);
    void *const first = table->queue(device);
    CHECK(table->put(first, memory, before, large) == 0);
    CHECK(table->wait(first) == 0);
    void *const reader = table->queue(device);
    void *const writer = table->queue(device);
    void *const event = table->event();
    CHECK(table->get(reader, back, memory, large) == 0);
    CHECK(table->record_event(event, reader) == 0);
    CHECK(table->wait_event(event, writer) == 0);
    CHECK(table->put(writer, memory, after, large) == 0);
    CHECK(table->wait(writer) == 0);
    CHECK(table->wait(reader) == 0);
    CHECK(memcmp(back, before, large) == 0);
    table->forget_event(event);
    free(before);
    free(after);
    free(back);
}

static void from_one_to_another(int from, uint64_t source, int to, uint64_t target) {
    unsigned char *const bytes = pattern((unsigned)(10 * from + to));
    unsigned char *const back = calloc(1, large);
    void *const there = table->queue(from);
    CHECK(table->put(there, source, bytes, large) == 0);
    CHECK(table->copy(there, to, target + 16, source + 8, large - 16) == 0);
    CHECK(table->wait(there) == 0);
    void *const last = table->queue(to);
    CHECK(table->get(last, back, target + 16, large - 16) == 0);
    CHECK(table->wait(last) == 0);
    CHECK(memcmp(back, bytes + 8, large - 16) == 0);
    free(bytes);
    free(back);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    setenv(DIOMP_REMOTE_LOADING, "1", 1);
    void *const library = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
    CHECK(library != NULL);
    void *const found = dlsym(library, "diomp_remote_table");
    diomp_remote_table_function function;
    memcpy(&function, &found, sizeof function);
    table = function();
    CHECK(table->version == DIOMP_REMOTE_TABLE_VERSION && table->wanted());
    int const count = table->open();
    CHECK(count > 0 && count <= most_devices);
    uint64_t memory[most_devices];
    for (int i = 0; i < count; ++i) {
        memory[i] = table->allocate(i, large);
        CHECK(memory[i] != 0);
        there_and_back(i, memory[i]);
        get_before_another_queue(i, memory[i]);
    }
    for (int from = 0; from < count; ++from) {
        for (int to = 0; to < count; ++to) {
            if (from != to) {
                from_one_to_another(from, memory[from], to, memory[to]);
            }
        }
    }
    for (int i = 0; i < count; ++i) {
        CHECK(table->release(i, memory[i]) == 0);
        CHECK(table->release(i, memory[i]) == -1);
    }
    table->close();
    printf("mover: ok\n");
    return 0;
}
