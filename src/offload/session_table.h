// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The runtime of regions on remote devices: what a session (service/region_runtime.h) gives to
// libdiomp.so, which the images of regions that make calls depend on. The sessions of the devices
// with one index on all ranks of a job are the ranks of a job of their own: rank i is the device of
// rank i.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define DIOMP_SESSION_TABLE_VERSION 5

#ifdef __cplusplus
extern "C" {
#endif

/// The launcher of that job (launch/launch.h): values are bytes, and the calls are made by one
/// thread.
struct diomp_session {
    uint32_t version;
    int32_t rank;
    int32_t size;
    /// Every rank gets the same value under the key, by its owner.
    void *launcher;
    /// These return 0, or -1 for an error.
    int (*put)(void *launcher, const char *key, size_t key_bytes, const char *value,
               size_t value_bytes);
    int (*fence)(void *launcher);
    /// Passes the value to `take`. Any thread.
    int (*get)(void *launcher, int32_t owner, const char *key, size_t key_bytes,
               void (*take)(void *into, const char *value, size_t value_bytes), void *into);
    /// The memory of a processor: symmetric memory of that job. Null: the device is a GPU.
    void *memory;
    size_t memory_bytes;
    /// A GPU: LLVM's name for its plugin ("cuda", "amdgpu"), and its index there. It is device 0 of
    /// the runtime.
    const char *plugin;
    int32_t plugin_device;
    /// The world of this process: sessions whose `node` is equal share memory.
    void *world;
    const char *node;
    int32_t rank_in_world;
    /// Maps the memory of a session of this node, by its rank in the world, once more at `to`.
    /// Returns 0, or -1 for an error. Null: the pages must not be mapped elsewhere.
    int (*map)(void *world, int32_t rank_in_world, void *to);
    /// Receives each error of a call; `code` is its status. Any thread.
    void *errors;
    void (*report)(void *errors, int32_t code, const char *function, const char *arguments,
                   const char *message, const char *remedy);
};

/// Starts the runtime of this process. Collective; blocks. Returns null, or the message of the
/// error. `session` lives until the process ends. `log_descriptor`: for the log of the start, the
/// standard error of the service, not that of the program.
typedef const char *(*diomp_session_start_function)(const struct diomp_session *session,
                                                    int log_descriptor);
#define DIOMP_SESSION_START "diomp_session_start"

/// Completes the transfers of all regions so far. Blocks. Errors are reported.
typedef void (*diomp_session_fence_function)(void);
#define DIOMP_SESSION_FENCE "diomp_session_fence"

/// A session of this node has ended, which shared memory does not show: waits fail if it is a rank
/// of the job. Any thread.
typedef void (*diomp_session_lost_function)(int32_t rank_in_world);
#define DIOMP_SESSION_LOST "diomp_session_lost"

/// The segment of the GPU for the client, which keeps its heap: to this runtime all of it is
/// allocated. Creates it if necessary; its size is DIOMP_DEVICE_SEGMENT_SIZE. Returns its address
/// on the device, which is `preferred` if the driver can reserve that; 0: it does not have
/// `nbytes`, or the device has none. Any thread.
typedef uint64_t (*diomp_session_segment_function)(uint64_t nbytes, uint64_t preferred);
#define DIOMP_SESSION_SEGMENT "diomp_session_segment"

/// What libomptarget calls (table.h) in a session that drives a GPU: it allocates nothing.
typedef const struct diomp_offload_table *(*diomp_session_regions_function)(void);
#define DIOMP_SESSION_REGIONS "diomp_session_regions"

/// Receives the error of a call; `code` is its status.
typedef void (*diomp_session_failure)(void *into, int32_t code, const char *message,
                                      const char *remedy);
/// Makes a call of the host on memory of this device: `call` is encoded by libdiomp.so
/// (session_transfer.h, device_coll/session_call.h). Passes an error to `fail`, at most once. Any
/// thread; blocks.
typedef void (*diomp_session_call_function)(const char *call, size_t call_bytes,
                                            diomp_session_failure fail, void *into);
#define DIOMP_SESSION_CALL "diomp_session_call"

/// Takes a group of the host that calls in regions may name, or that is freed, encoded by
/// libdiomp.so (device_coll/session_call.h). Returns 1 if it is freed and the session has a group
/// for it, else 0. Any thread; waits for the sessions of the members, not for regions.
typedef int32_t (*diomp_session_group_function)(const char *group, size_t group_bytes);
#define DIOMP_SESSION_GROUP "diomp_session_group"

#ifdef __cplusplus
}
#endif
