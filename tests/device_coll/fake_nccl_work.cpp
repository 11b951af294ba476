// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How the stand-in's members meet and what their operations do.
#include "device_coll/fake_nccl.h"

#include <algorithm>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <sys/mman.h>
#include <type_traits>
#include <unistd.h>

namespace fake_nccl {

namespace {

constexpr std::size_t page_bytes = (sizeof(page) + 4095) / 4096 * 4096;
constexpr std::size_t file_bytes =
    page_bytes + most_ranks * stage_bytes + most_ranks * most_ranks * box_bytes;

/// Numbers of the types, as nccl.h has them.
template <typename Function>
void with_type(int type, Function &&use) {
    struct brain_float {
        std::uint16_t bits;
    };
    switch (type) {
    case 0:
        return use(std::int8_t{});
    case 1:
        return use(std::uint8_t{});
    case 2:
        return use(std::int32_t{});
    case 3:
        return use(std::uint32_t{});
    case 4:
        return use(std::int64_t{});
    case 5:
        return use(std::uint64_t{});
    case 6:
        return use(_Float16{});
    case 7:
        return use(float{});
    case 8:
        return use(double{});
    default:
        return use(brain_float{});
    }
}

/// In which arithmetic is done, and back.
template <typename T>
auto widen(T from) {
    if constexpr (std::is_integral_v<T>) {
        return from;
    } else if constexpr (std::is_class_v<T>) {
        std::uint32_t const bits = std::uint32_t{from.bits} << 16;
        float wide = 0;
        std::memcpy(&wide, &bits, sizeof(wide));
        return wide;
    } else {
        return static_cast<std::conditional_t<std::is_same_v<T, double>, double, float>>(from);
    }
}
template <typename T, typename Wide>
T narrow(Wide from) {
    if constexpr (std::is_class_v<T>) {
        std::uint32_t bits = 0;
        std::memcpy(&bits, &from, sizeof(bits));
        return {static_cast<std::uint16_t>(bits >> 16)}; // tests use numbers that need no rounding
    } else {
        return static_cast<T>(from);
    }
}

template <typename Wide>
Wide combine_one(Wide a, Wide b, int op) {
    if constexpr (std::is_integral_v<Wide>) {
        if (op < 2) { // wraps around
            auto const x = static_cast<std::uint64_t>(a);
            auto const y = static_cast<std::uint64_t>(b);
            return static_cast<Wide>(op == 1 ? x * y : x + y);
        }
    }
    return op == 1   ? static_cast<Wide>(a * b)
           : op == 2 ? std::max(a, b)
           : op == 3 ? std::min(a, b)
                     : static_cast<Wide>(a + b);
}

} // namespace

std::size_t size_of(int type) {
    std::size_t size = 0;
    with_type(type, [&](auto element) { size = sizeof(element); });
    return size;
}

void combine(void *into, const void *with, std::size_t count, int type, int op) {
    with_type(type, [&](auto element) {
        using t = decltype(element);
        for (std::size_t i = 0; i < count; ++i) {
            t a;
            t b;
            std::memcpy(&a, static_cast<char *>(into) + i * sizeof(t), sizeof(t));
            std::memcpy(&b, static_cast<const char *>(with) + i * sizeof(t), sizeof(t));
            a = narrow<t>(combine_one(widen(a), widen(b), op));
            std::memcpy(static_cast<char *>(into) + i * sizeof(t), &a, sizeof(t));
        }
    });
}

void divide(void *values, std::size_t count, int type, int by) {
    with_type(type, [&](auto element) {
        using t = decltype(element);
        for (std::size_t i = 0; i < count; ++i) {
            t a;
            std::memcpy(&a, static_cast<char *>(values) + i * sizeof(t), sizeof(t));
            auto const wide = widen(a);
            a = narrow<t>(
                static_cast<decltype(widen(a))>(wide / static_cast<decltype(widen(a))>(by)));
            std::memcpy(static_cast<char *>(values) + i * sizeof(t), &a, sizeof(t));
        }
    });
}

std::shared_ptr<meeting> meeting::open(const unique_id &id, int rank, int device, int count) {
    std::string const name(id.bytes, ::strnlen(id.bytes, sizeof(id.bytes)));
    std::string const path = "/dev/shm/" + name;
    if (!name.starts_with("fake-nccl-") || name.find('/') != std::string::npos) {
        return nullptr;
    }
    int const fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ::ftruncate(fd, static_cast<off_t>(file_bytes)) != 0) {
        return nullptr;
    }
    // A new file is all zero, which is how every field begins.
    void *const base = ::mmap(nullptr, file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ::close(fd);
    std::shared_ptr<meeting> made(new meeting(base, path, count));
    made->shared().members[rank].device = device; // before others may look
    if (made->shared().attached.fetch_add(1) + 1 == count) {
        ::unlink(path.c_str());
    }
    return made;
}

meeting::~meeting() {
    if (shared().attached.load() < count_) {
        ::unlink(path_.c_str()); // the others did not come
    }
    ::munmap(base_, file_bytes);
}

char *meeting::stage(int rank) {
    return static_cast<char *>(base_) + page_bytes + static_cast<std::size_t>(rank) * stage_bytes;
}

char *meeting::box_data(int from, int to) {
    return static_cast<char *>(base_) + page_bytes + most_ranks * stage_bytes +
           static_cast<std::size_t>(from * most_ranks + to) * box_bytes;
}

bool operation::advance() {
    if (complete || of->aborted) {
        complete = true;
    } else if (!is_set_to("FAKE_NCCL_STALL", "work")) {
        complete = is_pairwise(requests.front().what) ? advance_pairs() : advance_collective();
    }
    return complete;
}

namespace {

/// What the member brings, in blocks of `count`.
std::size_t blocks_brought(const request &what, int rank, int count) {
    switch (what.what) {
    case kind::broadcast:
        return what.peer == rank ? 1 : 0;
    case kind::reduce_scatter:
        return static_cast<std::size_t>(count);
    default:
        return 1;
    }
}

/// The operands of all members, combined, from the last to the first: not in the order of ranks,
/// which the library does not promise either.
std::vector<char> combined(meeting &where, const request &what, std::size_t offset, int count) {
    std::size_t const nbytes = what.count * size_of(what.type);
    std::vector<char> sum(where.stage(count - 1) + offset,
                          where.stage(count - 1) + offset + nbytes);
    for (int rank = count - 2; rank >= 0; --rank) {
        combine(sum.data(), where.stage(rank) + offset, what.count, what.type, what.op);
    }
    if (what.op == 4) {
        divide(sum.data(), what.count, what.type, count);
    }
    return sum;
}

void deliver(meeting &where, const request &what, int rank, int count) {
    std::size_t const nbytes = what.count * size_of(what.type);
    switch (what.what) {
    case kind::broadcast:
        devices().copy(what.to, where.stage(what.peer), nbytes);
        return;
    case kind::all_gather:
        for (int each = 0; each < count; ++each) {
            devices().copy(static_cast<char *>(what.to) + static_cast<std::size_t>(each) * nbytes,
                           where.stage(each), nbytes);
        }
        return;
    case kind::reduce:
        if (what.peer != rank) {
            return;
        }
        [[fallthrough]];
    default:
        std::size_t const offset =
            what.what == kind::reduce_scatter ? static_cast<std::size_t>(rank) * nbytes : 0;
        devices().copy(what.to, combined(where, what, offset, count).data(), nbytes);
    }
}

} // namespace

bool operation::advance_collective() {
    page &shared = of->where->shared();
    member &self = shared.members[of->rank];
    request const &what = requests.front();
    std::uint64_t const number = self.departed.load() + 1;
    if (!arrived) {
        for (int i = 0; i < of->count; ++i) {
            if (shared.members[i].departed.load() + 1 < number) {
                return false; // still reads the stages of the one before
            }
        }
        std::size_t const nbytes =
            blocks_brought(what, of->rank, of->count) * what.count * size_of(what.type);
        devices().copy(of->where->stage(of->rank), what.from, nbytes);
        self.latest = what;
        self.arrived.store(number);
        arrived = true;
    }
    for (int i = 0; i < of->count; ++i) {
        if (shared.members[i].arrived.load() < number) {
            return false;
        }
    }
    for (int i = 0; i < of->count; ++i) {
        std::string const theirs = to_string(shared.members[i].latest);
        if (theirs != to_string(what)) {
            if (of->failure == ok) {
                complain("stream",
                         "rank " + std::to_string(of->rank) + " makes " + to_string(what) +
                             ", rank " + std::to_string(i) + " " + theirs,
                         ok);
            }
            of->failure = invalid_usage;
            return false;
        }
    }
    deliver(*of->where, what, of->rank, of->count);
    self.departed.store(number);
    return true;
}

bool operation::advance_pairs() {
    page &shared = of->where->shared();
    over.resize(requests.size());
    bool all_over = true;
    std::vector<int> blocked_to(most_ranks); // messages between two members keep their order
    std::vector<int> blocked_from(most_ranks);
    for (std::size_t i = 0; i < requests.size(); ++i) {
        request const &what = requests[i];
        bool const sends = what.what == kind::send;
        auto const peer = static_cast<std::size_t>(what.peer);
        int &blocked = sends ? blocked_to[peer] : blocked_from[peer];
        if (over[i] || blocked != 0) {
            all_over = all_over && over[i];
            continue;
        }
        int const from = sends ? of->rank : what.peer;
        int const to = sends ? what.peer : of->rank;
        box &between = shared.boxes[from][to];
        bool const full = between.sent.load() > between.taken.load();
        if (full == sends) {
            blocked = 1;
            all_over = false;
            continue;
        }
        std::size_t const nbytes = what.count * size_of(what.type);
        if (sends) {
            between.count = what.count;
            between.type = what.type;
            devices().copy(of->where->box_data(from, to), what.from, nbytes);
            between.sent.fetch_add(1);
        } else {
            if (of->failure != ok) {
                return false;
            }
            if (between.count != what.count || between.type != what.type) {
                complain("stream",
                         to_string(what) + " of rank " + std::to_string(of->rank) + ", who sends " +
                             std::to_string(between.count),
                         ok);
                of->failure = invalid_usage;
                return false;
            }
            devices().copy(what.to, of->where->box_data(from, to), nbytes);
            between.taken.fetch_add(1);
        }
        over[i] = true;
    }
    return all_over;
}

} // namespace fake_nccl
