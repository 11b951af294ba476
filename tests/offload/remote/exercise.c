/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * usage: exercise FIRST COUNT [CASE]...    cases in this order; all but print without any */
#include "exercise.h"

#include <string.h>

int first_remote, num_remote;

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"devices", case_devices},
    {"map_sizes", case_map_sizes},
    {"map_large", case_map_large},
    {"map_structs", case_map_structs},
    {"map_list", case_map_list},
    {"globals", case_globals},
    {"copies_globals", case_copies_globals},
    {"update", case_update},
    {"reference_counts", case_reference_counts},
    {"device_pointers", case_device_pointers},
    {"allocate", case_allocate},
    {"copies", case_copies},
    {"copies_between", case_copies_between},
    {"rectangles", case_rectangles},
    {"copies_async", case_copies_async},
    {"associate", case_associate},
    {"idle_pages", case_idle_pages},
    {"depend_chain", case_depend_chain},
    {"depend_across", case_depend_across},
    {"many_tasks", case_many_tasks},
    {"threads", case_threads},
    {"enter_nowait", case_enter_nowait},
    {"no_bytes", case_no_bytes},
    {"overlaps", case_overlaps},
    {"unmapped_updates", case_unmapped_updates},
    {"same_array", case_same_array},
    {"many_chains", case_many_chains},
    {"reductions", case_reductions},
    {"loops", case_loops},
    {"nested", case_nested},
    {"routines", case_routines},
    {"many_arguments", case_many_arguments},
    {"state", case_state},
    {"print", case_print},
};
enum { num_cases = sizeof cases / sizeof *cases };

static void run(const char *name) {
    for (int i = 0; i < num_cases; ++i) {
        if (strcmp(cases[i].name, name) == 0) {
            double const begin = omp_get_wtime();
            cases[i].run();
            fprintf(stderr, "%-17s %.3f s\n", name, omp_get_wtime() - begin);
            return;
        }
    }
    fprintf(stderr, "there is no case '%s'\n", name);
    exit(2);
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: exercise FIRST COUNT [CASE]...\n");
        return 2;
    }
    first_remote = atoi(argv[1]);
    num_remote = atoi(argv[2]);
    CHECK(omp_get_num_devices() == first_remote + num_remote);
    for (int i = 3; i < argc; ++i) {
        run(argv[i]);
    }
    for (int i = 0; argc == 3 && i < num_cases - 1; ++i) {
        run(cases[i].name);
    }
    printf("exercise: ok\n");
    return 0;
}
