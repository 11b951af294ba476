/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * usage: later_entries LIBOMPTARGET    registers a region as programs of LLVM 22 do */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

struct later_entry {
    uint64_t reserved;
    uint16_t version;
    uint16_t kind;
    uint32_t flags;
    void *address;
    const char *name;
    uint64_t nbytes;
    uint64_t data;
    void *auxiliary;
};

struct device_image {
    const void *begin;
    const void *end;
    struct later_entry *first_entry;
    struct later_entry *last_entry;
};

struct descriptor {
    int32_t num_images;
    struct device_image *images;
    struct later_entry *first_entry;
    struct later_entry *last_entry;
};

int main(int argc, char **argv) {
    static char region;
    static const char image[] = "no image";
    static struct later_entry entries[] = {
        {0, 1, 1, 0, &region, "__omp_offloading_1_2_main_l3", 0, 0, NULL}};
    static struct device_image images[] = {{image, image + sizeof image, entries, entries + 1}};
    static struct descriptor all = {1, images, entries, entries + 1};
    void *const library = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
    void *const symbol = library ? dlsym(library, "__tgt_register_lib") : NULL;
    if (!symbol) {
        fprintf(stderr, "usage: later_entries LIBOMPTARGET\n");
        return 2;
    }
    ((void (*)(struct descriptor *))symbol)(&all);
    printf("went on\n");
    return 0;
}
