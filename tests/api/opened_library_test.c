// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A library that needs libdiomp is opened by the program, and still open when it exits: the runtime
// ends before the libraries that it has opened itself.
//
//   opened_library_test LIBRARY
#include "diomp.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    void *const opened = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (opened == NULL) {
        fprintf(stderr, "%s\n", argc == 2 ? dlerror() : "usage: opened_library_test LIBRARY");
        return 1;
    }
    void *const found = dlsym(opened, "rank_after_barrier");
    int (*rank_after_barrier)(void);
    memcpy(&rank_after_barrier, &found, sizeof(found));
    return rank_after_barrier() == ompx_rank_num() ? 0 : 1;
}
