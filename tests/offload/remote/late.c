/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * usage: late OMPTARGET LIBRARY...    loads libraries with regions; knows nothing of OpenMP itself
 */
#include <dlfcn.h>
#include <stdio.h>

static void *open_library(const char *name) {
    void *const library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
    }
    return library;
}

int main(int argc, char **argv) {
    // It cannot be loaded twice, which libraries that are closed would make of it.
    if (argc < 2 || open_library(argv[1]) == NULL) {
        return 2;
    }
    for (int round = 0; round < 2; ++round) {
        void *open[8] = {NULL};
        for (int i = 2; i < argc && i < 8; ++i) {
            open[i] = open_library(argv[i]);
            int (*next)(int) = NULL;
            *(void **)&next = open[i] == NULL ? NULL : dlsym(open[i], "next_count");
            if (next == NULL) {
                return 1;
            }
            int const first = next(0);
            printf("%d %d %d\n", first, next(1), next(0));
        }
        for (int i = 2; i < argc && i < 8; ++i) {
            dlclose(open[i]);
        }
    }
    return 0;
}
