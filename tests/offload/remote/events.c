// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A tool of its own (OMPT): prints what OpenMP tells about devices while target constructs run on
// the default device. Knows nothing of DiOMP. Addresses and device numbers of memory that differ
// between kinds of devices are not shown.
#include <omp-tools.h>
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static const char *point(ompt_scope_endpoint_t endpoint) {
    return endpoint == ompt_scope_begin ? "begin" : "end";
}

static const char *place(int device) {
    return device == omp_get_initial_device() ? "host" : "device";
}

static void on_initialize(int device, const char *type, ompt_device_t *handle,
                          ompt_function_lookup_t lookup, const char *documentation) {
    (void)type;
    (void)handle;
    (void)lookup;
    (void)documentation;
    printf("initialize %d\n", device);
}

static void on_load(int device, const char *file, int64_t offset, void *in_file, size_t bytes,
                    void *host, void *there, uint64_t module) {
    (void)file;
    (void)offset;
    (void)in_file;
    (void)bytes;
    (void)host;
    (void)there;
    (void)module;
    printf("load %d\n", device);
}

static void on_target(ompt_target_t kind, ompt_scope_endpoint_t endpoint, int device,
                      ompt_data_t *task, ompt_data_t *target_task, ompt_data_t *target,
                      const void *code) {
    static uint64_t last_target = 0;
    (void)task;
    (void)target_task;
    (void)code;
    if (endpoint == ompt_scope_begin) {
        target->value = ++last_target;
    }
    printf("target %d %s, construct %d of device %d\n", (int)target->value, point(endpoint),
           (int)kind, device);
}

static void on_data(ompt_scope_endpoint_t endpoint, ompt_data_t *target_task, ompt_data_t *target,
                    ompt_id_t *operation, ompt_target_data_op_t kind, void *source,
                    int source_device, void *destination, int destination_device, size_t bytes,
                    const void *code) {
    (void)target_task;
    (void)target;
    (void)operation;
    (void)source;
    (void)destination;
    (void)code;
    printf("data %s, operation %d, %zu bytes from %s to %s\n", point(endpoint), (int)kind, bytes,
           place(source_device), place(destination_device));
}

static void on_submit(ompt_scope_endpoint_t endpoint, ompt_data_t *target, ompt_id_t *operation,
                      unsigned num_teams) {
    (void)operation;
    printf("submit %s, in target %d, %u teams\n", point(endpoint), (int)target->value, num_teams);
}

static void demand(ompt_set_callback_t set, ompt_callbacks_t event, ompt_callback_t function) {
    if (set(event, function) != ompt_set_always) {
        printf("no event %d\n", (int)event);
    }
}

static int start(ompt_function_lookup_t lookup, int initial_device, ompt_data_t *data) {
    (void)initial_device;
    (void)data;
    ompt_set_callback_t const set = (ompt_set_callback_t)lookup("ompt_set_callback");
    demand(set, ompt_callback_device_initialize, (ompt_callback_t)on_initialize);
    demand(set, ompt_callback_device_load, (ompt_callback_t)on_load);
    demand(set, ompt_callback_target_emi, (ompt_callback_t)on_target);
    demand(set, ompt_callback_target_data_op_emi, (ompt_callback_t)on_data);
    demand(set, ompt_callback_target_submit_emi, (ompt_callback_t)on_submit);
    return 1;
}

static void end(ompt_data_t *data) { (void)data; }

ompt_start_tool_result_t *ompt_start_tool(unsigned version, const char *runtime) {
    static ompt_start_tool_result_t result = {&start, &end, {0}};
    (void)version;
    (void)runtime;
    return &result;
}

int main(void) {
    enum { count = 1000 };
    double *const values = calloc(count, sizeof(double));
#pragma omp target teams distribute parallel for map(tofrom : values[0 : count]) num_teams(1)
    for (int i = 0; i < count; ++i) {
        values[i] += i;
    }
#pragma omp target enter data map(to : values[0 : count])
#pragma omp target map(present, alloc : values[0 : count])
    values[1] *= 2;
#pragma omp target update from(values[0 : 2])
#pragma omp target update to(values[0 : 2])
#pragma omp target exit data map(from : values[0 : count])
    int const device = omp_get_default_device();
    double *const there = omp_target_alloc(count * sizeof(double), device);
    if (there == NULL || omp_target_memcpy(there, values, count * sizeof(double), 0, 0, device,
                                           omp_get_initial_device()) != 0) {
        printf("no memory on the device\n");
    }
    omp_target_free(there, device);
    printf("%g %g\n", values[1], values[count - 1]);
    free(values);
    return 0;
}
