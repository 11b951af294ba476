// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A stand-in for CUDA's driver: what tests load in place of libcuda.so.1. Memfds stand for device
// memory, so that it can really be shared with a process. The processor cannot load or store it:
// whoever takes a device address for one of the host gets a segmentation fault.
//
// It is strict where the driver is documented to be: a context must be current, sizes are multiples
// of the granularity, mappings are unmapped before they are freed, and a copy touches only what its
// device has been given access to. Whatever is against that is an error code and a complaint that
// the test reads at its end.
//
// Copies are carried out late: at the nth question (cuStreamQuery) after the copy, or when somebody
// waits. Work of other stand-ins (fake_cuda_enqueue) takes its turn among them and says itself when
// it is complete. The runtime's kernels are run on the processor, from the source that is compiled
// for GPUs.
//
//     FAKE_CUDA_DEVICES=n        number of devices, 2
//     FAKE_CUDA_MEBIBYTES=n      memory of each device, 64
//     FAKE_CUDA_PEERS=none       no device reaches another
//     FAKE_CUDA_VMM=none         no virtual memory management
//     FAKE_CUDA_LOADS=any        processors load and store the memory, as network adapters do GPUs'
//     FAKE_CUDA_KERNELS=none     a module is refused as one of a newer driver is
//     FAKE_CUDA_PATIENCE=n       questions until copies are carried out, 2
//     FAKE_CUDA_COMPLAINTS=tell  on standard error, too, for tests in other processes
//     FAKE_CUDA_SHOW_LAUNCHES=   the launches of graphs, and of regions outside them, are printed
//     at
//                                the end of programs with images
//     FAKE_CUDA_FAIL=NAME[#N]=C  calls of NAME (the Nth only) return the code C
//
// The types are declared here once more, after the documentation and not after src/device/cuda, so
// that the two are compared by what they exchange.
#pragma once

#include "device/stand_in_kernels.h"
#include "support/stand_in.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

namespace fake_cuda {

inline constexpr int ok = 0;
inline constexpr int invalid_value = 1;
inline constexpr int out_of_memory = 2;
inline constexpr int no_device = 100;
inline constexpr int invalid_device = 101;
inline constexpr int invalid_context = 201;
inline constexpr int already_mapped = 208;
inline constexpr int unsupported_ptx_version = 222;
inline constexpr int invalid_handle = 400;
inline constexpr int not_found = 500;
inline constexpr int not_ready = 600;
inline constexpr int peer_access_unsupported = 217;
inline constexpr int peer_access_already_enabled = 704;
inline constexpr int host_memory_already_registered = 712;
inline constexpr int host_memory_not_registered = 713;
inline constexpr int not_supported = 801;
inline constexpr int capture_unsupported = 900;
inline constexpr int capture_invalidated = 901;

inline constexpr std::size_t granularity = std::size_t{2} << 20;
std::size_t device_bytes();

using device_address = unsigned long long;
/// Of what stands for device memory.
int protection();
inline void *pointer(device_address where) { return reinterpret_cast<void *>(where); }

/// In labels and tokens.
inline constexpr std::uint64_t magic = 0x64696f6d70637564;

struct location {
    int type;
    int id;
};
struct allocation_properties {
    int type;
    int handle_types;
    location where;
    void *win32;
    unsigned char compression;
    unsigned char gpu_direct_rdma;
    unsigned short usage;
    unsigned char reserved[4];
};
struct access_description {
    location where;
    int flags;
};
struct token {
    char bytes[64];
};

/// A device and its primary context; the address of one is the context's handle.
struct device {
    int number = 0;
    int retained = 0;
    std::set<int> reaches; ///< cuCtxEnablePeerAccess
};

/// Memory of a device: a memfd with a page behind the memory that says what it is.
struct physical {
    int fd = -1;
    std::size_t size = 0;
    int device = 0;
    bool exportable = false;
    int references = 1; ///< its handle and its mappings
};

struct mapping {
    std::size_t size = 0;
    unsigned long long handle = 0;
    std::set<int> readers;
};

/// cuMemAlloc, or cuIpcOpenMemHandle.
struct allocation {
    std::size_t size = 0;
    physical of;
    bool opened = false;
};

using work_function = int (*)(void *argument); ///< 1: complete, 0: ask again

struct module {
    int device = 0;
    std::string text;
    void *library = nullptr; ///< of an image for the processor
};
/// With what a function of a module was asked for and is launched.
struct function {
    const module *in = nullptr;
    const stand_in::kernel *runs = nullptr;
    void (*entry)() = nullptr; ///< of a library
};
/// A launch of a function of a library.
struct image_call {
    void (*entry)() = nullptr;
    std::vector<std::uint64_t> words;
};
struct launch {
    const stand_in::kernel *runs = nullptr;
    unsigned num_blocks = 0;
    unsigned block_threads = 0;
    stand_in::reduction_arguments with;
    stand_in::update_arguments updates{}; ///< of the kernel of update.h
};

struct stream;
struct event {
    stream *of = nullptr;
    unsigned long long end = 0; ///< items of the stream that it waits for
};

/// A copy, work, a kernel, or a wait.
struct pending_item {
    device_address dst = 0;
    device_address src = 0;
    std::size_t size = 0;
    work_function work = nullptr;
    void *argument = nullptr;
    std::optional<launch> kernel{};
    std::optional<image_call> call{};
    std::optional<event> until{};
    const void *executable = nullptr; ///< the graph that it is of
};
struct stream {
    int device = 0;
    int questions = 0;
    std::deque<pending_item> pending;
    unsigned long long num_complete = 0;
    bool is_busy = false; ///< a thread carries its first item out without the mutex
    std::optional<std::vector<pending_item>> captured{};

    /// Adds the item to what is pending or captured.
    void add(pending_item item);
};

/// A captured graph, or one that can be launched.
struct graph {
    int device = 0;
    std::vector<pending_item> items;
};

/// Everything, under one mutex.
struct world {
    std::mutex mutex;
    bool initialised = false;
    std::deque<device> devices;
    std::map<device_address, std::size_t> reservations;
    std::map<device_address, mapping> mappings;
    std::map<unsigned long long, physical> handles;
    std::map<device_address, allocation> allocations;
    std::map<void *, std::size_t> host_allocations;
    std::map<void *, std::size_t> registered; ///< host memory of others
    std::set<stream *> streams;
    std::map<module *, std::unique_ptr<module>> modules;
    std::map<std::pair<module *, std::string>, function> functions;
    std::map<const graph *, std::unique_ptr<graph>> graphs;
    std::map<const graph *, std::unique_ptr<graph>> executables; ///< of graphs
    int launches = 0;
    int image_launches = 0; ///< not those of graphs
    int graph_launches = 0;
    std::size_t host_bytes = 0;       ///< copied between devices and the host
    std::size_t largest_pageable = 0; ///< bytes of a copy from or to host memory that is not pinned
    unsigned long long last_handle = 0;
    std::string complaints;

    stand_in::failure demanded{"FAKE_CUDA_FAIL"};
};
world &all();

/// Writes a complaint; returns the code for convenience.
int complain(const char *function, const std::string &text, int code);
/// The device whose context is current, or -1 with a complaint.
int current_device(const char *function);
bool peers_exist();
std::size_t used_on(int device);
/// Whether `device` may touch the range; host memory always.
bool may_touch(int device, device_address from, std::size_t size);
/// Whether the driver has allocated or registered the host memory there.
bool is_pinned(const void *where);
/// The device in whose memory the address lies; -1: none.
int owner_of(device_address where);

/// Reads or writes memory of any sort.
void transfer(bool reading, device_address where, char *buffer, std::size_t size);
void carry_out(const launch &what);
void carry_out(const image_call &what);
/// Carries out what is pending, until num_complete is `end`; false: work of the first item is not
/// complete. Work and images run without the mutex, since they call the driver.
bool carry_out(stream &of, std::unique_lock<std::mutex> &guard, unsigned long long end = ~0ULL);
/// Lets the processor load and store the page of an address of a device, or forbids it again.
void expose(device_address where, bool allow);
/// Carries out a copy between device memory and host memory of any sort.
void move_bytes(device_address dst, device_address src, std::size_t size);

/// The function of an image for the processor, or null.
void (*find_entry(const module &in, const char *name))();
/// Captured streams cannot be asked or waited for.
int refuse_captured(const char *function, stream &of);

physical make_physical(int device, std::size_t size, bool exportable);
/// Reads what a descriptor is; -1 in fd: no device memory.
physical open_physical(int fd);

} // namespace fake_cuda

/// At the start of every function of the driver.
#define FAKE_CUDA_ENTER                                                                            \
    std::unique_lock guard(fake_cuda::all().mutex);                                                \
    if (int const demanded_ = fake_cuda::all().demanded.of(__func__)) {                            \
        return demanded_;                                                                          \
    }
/// And of those that need a context.
#define FAKE_CUDA_ENTER_CONTEXT                                                                    \
    FAKE_CUDA_ENTER                                                                                \
    int const current = fake_cuda::current_device(__func__);                                       \
    if (current < 0) {                                                                             \
        return fake_cuda::invalid_context;                                                         \
    }
