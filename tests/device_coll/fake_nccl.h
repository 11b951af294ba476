// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A stand-in for NCCL: what tests load in place of libnccl.so.2, on the stand-in for CUDA's driver
// (device/fake_cuda.h), whose memory it moves and combines. Members may be in several processes of
// the machine: they meet in a file of /dev/shm that is named by the unique id.
//
// It is late like the library: a communicator that does not block is ready, and its calls are on
// the streams, after some questions (ncclCommGetAsyncError); an operation is complete when its
// stream is asked and all members have come that far. And it is stricter: it complains of members
// that make different calls, of several endpoints of a process outside a group or not all in it, of
// calls while a communicator is not ready, of counts of zero, of buffers that overlap or that own
// endpoints cannot reach, and of communicators that are destroyed twice or with work under way.
//
//     FAKE_NCCL_VERSION=n        what ncclGetVersion says, 23203
//     FAKE_NCCL_PATIENCE=n       questions until a communicator is ready, 2
//     FAKE_NCCL_FAIL=NAME[#N]=C  calls of NAME (the Nth only) return the code C
//     FAKE_NCCL_ASYNC=C[@R]      a communicator (the one of rank R) reports C once it has work
//     FAKE_NCCL_STALL=connect|work   communicators never get ready; operations never complete
//
// Types are declared here once more, after nccl.h, so that the two sides are compared by what they
// exchange. Written for few members and small buffers; not for speed.
#pragma once

#include "support/stand_in.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace fake_nccl {

using stand_in::is_set_to;
using stand_in::number_of;

inline constexpr int ok = 0;
inline constexpr int unhandled_cuda_error = 1;
inline constexpr int system_error = 2;
inline constexpr int invalid_argument = 4;
inline constexpr int invalid_usage = 5;
inline constexpr int in_progress = 7;

inline constexpr int most_ranks = 8;
inline constexpr std::size_t stage_bytes = std::size_t{4} << 20;
inline constexpr std::size_t box_bytes = std::size_t{1} << 20;

struct unique_id {
    char bytes[128];
};

/// The beginning of ncclConfig_t.
struct config {
    std::size_t size;
    unsigned magic;
    unsigned version;
    int blocking;
};

enum class kind { broadcast, reduce, all_reduce, all_gather, reduce_scatter, send, receive };
[[nodiscard]] inline bool is_pairwise(kind of) { return of >= kind::send; }

struct request {
    kind what;
    const void *from;
    void *to;
    std::size_t count;
    int type;
    int op;
    int peer; ///< or root; -1: neither
};

// In the file. Atomics order the plain fields before them.
struct member {
    std::atomic<std::uint64_t> arrived;  ///< collectives whose operand is in the stage
    std::atomic<std::uint64_t> departed; ///< those whose result has been made
    int device;
    request latest; ///< addresses are of its process
};
/// One message at a time from a member to another.
struct box {
    std::atomic<std::uint64_t> sent;
    std::atomic<std::uint64_t> taken;
    std::size_t count;
    int type;
};
struct page {
    std::atomic<int> attached;
    member members[most_ranks];
    box boxes[most_ranks][most_ranks]; ///< [from][to]
};

/// The file of one set of communicators, mapped; unlinked once all are attached.
class meeting {
public:
    /// Attaches a member.
    static std::shared_ptr<meeting> open(const unique_id &id, int rank, int device, int count);
    ~meeting();
    meeting(const meeting &) = delete;
    meeting &operator=(const meeting &) = delete;

    [[nodiscard]] page &shared() { return *static_cast<page *>(base_); }
    [[nodiscard]] char *stage(int rank);
    [[nodiscard]] char *box_data(int from, int to);

private:
    meeting(void *base, std::string path, int count)
        : base_(base), path_(std::move(path)), count_(count) {}

    void *const base_;
    std::string const path_;
    int const count_;
};

struct operation;

struct communicator {
    unique_id id{};
    int rank = 0;
    int count = 0;
    int device = -1;
    std::shared_ptr<meeting> where;
    bool connected = false;
    int questions = 0;
    std::vector<std::shared_ptr<operation>> held;    ///< not on the stream yet
    std::vector<std::shared_ptr<operation>> started; ///< on it, and perhaps complete
    std::uint64_t collectives = 0;
    int failure = ok;
    std::atomic<bool> aborted{false};

    [[nodiscard]] bool ready() const { return connected && held.empty(); }
};

/// A collective, or the sends and receives of a group.
struct operation {
    std::shared_ptr<communicator> of;
    void *stream = nullptr;
    std::vector<request> requests;
    std::vector<bool> over; ///< [request], of sends and receives
    bool arrived = false;
    std::atomic<bool> complete{false};

    /// Goes on; true: complete. Under the world's mutex.
    bool advance();

private:
    bool advance_collective();
    bool advance_pairs();
};

/// Everything of this process, under one mutex. That of CUDA's stand-in is taken under it.
struct world {
    std::mutex mutex;
    std::map<communicator *, std::shared_ptr<communicator>> alive;
    std::map<std::string, int> calls; ///< by name
    std::string complaints;
    std::string last_error;
    stand_in::failure demanded{"FAKE_NCCL_FAIL"};
    int ids = 0;
};
world &all();
int complain(const char *function, const std::string &text, int code);
/// Counts the call; what FAKE_NCCL_FAIL says of it; 0: nothing.
int demanded(const std::string &function);

/// Of the thread: what was called since the outermost start.
struct group {
    int depth = 0;
    int failure = ok;
    std::vector<std::shared_ptr<communicator>> fresh;
    std::vector<std::shared_ptr<operation>> issued; ///< one request each
};
group &open_group();
/// A failure inside a group is the group's as well.
int fail(int code);
int issue(const char *function, const request &what, void *in, void *stream);
int end_group();

std::shared_ptr<communicator> find(const char *function, void *of);
/// The communicators of this process that belong together.
std::vector<std::shared_ptr<communicator>> siblings(const unique_id &id);
/// As time goes by.
void progress(const std::shared_ptr<communicator> &of);
[[nodiscard]] bool has_work(const communicator &of);
void apply_async_failure(communicator &of);
/// What is on streams stays in memory, and completes without doing anything.
void leave(const std::shared_ptr<communicator> &of);

/// What the devices' stand-in does for us.
struct driver {
    int (*current)();
    int (*stream_device)(void *stream);
    int (*enqueue)(void *stream, int (*work)(void *), void *argument);
    int (*may_touch)(int device, const void *where);
    void (*copy)(void *dst, const void *src, std::size_t size);
};
const driver &devices();

std::size_t size_of(int type);
/// into[i] = into[i] op with[i].
void combine(void *into, const void *with, std::size_t count, int type, int op);
void divide(void *values, std::size_t count, int type, int by);
[[nodiscard]] std::string to_string(const request &of);

} // namespace fake_nccl
