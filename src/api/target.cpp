// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Device memory: the calls of diomp/target.h, and the table that libomptarget asks for.
#include "api/omp_runtime.h"
#include "api/state.h"
#include "offload/table.h"
#include "offload/variable_table.h"
#include "rma/copy.h"
#include "runtime/rank_devices.h"

#include <dlfcn.h>
#include <sched.h>
#include <utility>

using namespace diomp;
using api::g_fast;

namespace {

/// The window of this process, also when the runtime has ended: memory in it is never
/// libomptarget's own.
std::atomic<std::uintptr_t> g_window_base{0};
std::atomic<std::size_t> g_window_span{0};

/// libomptarget's, from when it is loaded on.
std::atomic<const diomp_variable_table *> g_variables{nullptr};

/// The program's own constructors have run, and with them those that register its images.
std::atomic<bool> g_has_images{false};

/// Changes before device memory of this rank goes away, and when the runtime starts or ends. Routes
/// of an earlier epoch are void.
std::atomic<std::uint64_t> g_epoch{1};

/// Of g_visitors.
constexpr int closed = -1;

/// Routes that a thread has used lately. Programs exchange few arrays with few ranks at a time.
struct known_route {
    int rank = -1;
    int remote_device = 0;
    int local_device = 0;
    offload::route route;
};
struct route_memory {
    static constexpr unsigned num = 7;
    known_route current; ///< at a fixed place: a put after a fence waits for every load in a chain
    known_route others[num];
    unsigned oldest = 0;
};
thread_local route_memory t_puts;
thread_local route_memory t_gets;

[[gnu::always_inline]] inline bool fits(const known_route &known, int rank, const void *remote,
                                        int remote_device, const void *local, int local_device,
                                        std::size_t nbytes) {
    return known.rank == rank && known.remote_device == remote_device &&
           known.local_device == local_device && known.route.there.holds(remote, nbytes) &&
           known.route.here.holds(local, nbytes) &&
           known.route.epoch == g_epoch.load(std::memory_order_acquire) &&
           known.route.generation == known.route.peer_generation->load(std::memory_order_acquire);
}

/// Not inlined, so that what is inlined needs no registers for it.
[[gnu::noinline]] const offload::route *find_other_route(route_memory &memory, int rank,
                                                         const void *remote, int remote_device,
                                                         const void *local, int local_device,
                                                         std::size_t nbytes) {
    for (known_route &other : memory.others) {
        if (fits(other, rank, remote, remote_device, local, local_device, nbytes)) {
            std::swap(other, memory.current);
            return &memory.current.route;
        }
    }
    return nullptr;
}

void remember(route_memory &memory, int rank, int remote_device, int local_device,
              const offload::route &learned) {
    if (learned.epoch != 0 && g_fast.is_plain.load(std::memory_order_relaxed)) {
        memory.others[memory.oldest] = memory.current;
        memory.oldest = (memory.oldest + 1) % route_memory::num;
        memory.current = {rank, remote_device, local_device, learned};
    }
}

/// Calls of libomptarget that are inside the runtime; below 0 while it is closed to them. OpenMP
/// goes on when the runtime ends, on any thread.
std::atomic<int> g_visitors{closed};

class visit {
public:
    visit() {
        int before = g_visitors.load(std::memory_order_relaxed);
        while (before != closed &&
               !g_visitors.compare_exchange_weak(before, before + 1, std::memory_order_acquire)) {
        }
        is_inside_ = before != closed;
    }
    ~visit() {
        if (is_inside_) {
            g_visitors.fetch_sub(1, std::memory_order_release);
        }
    }
    visit(const visit &) = delete;
    visit &operator=(const visit &) = delete;

    /// Null: closed.
    [[nodiscard]] runtime::runtime *running() const {
        return is_inside_ ? api::g_runtime.load(std::memory_order_acquire) : nullptr;
    }

private:
    bool is_inside_;
};

void *allocate_for_libomptarget(const diomp_offload_request *request) {
    visit const inside;
    auto *const running = inside.running();
    return running == nullptr ? nullptr : running->devices().allocate(*request);
}

int release_for_libomptarget(std::int32_t device, void *address) {
    bool const in_window =
        reinterpret_cast<std::uintptr_t>(address) - g_window_base.load(std::memory_order_relaxed) <
        g_window_span.load(std::memory_order_relaxed);
    bool const is_ours = in_window || offload::devices::was_ours(address);
    visit const inside;
    auto *const running = inside.running();
    if (!is_ours) {
        if (running != nullptr) {
            running->devices().before_release(address);
        }
        return 0;
    }
    if (running != nullptr && !running->devices().release(device, address)) {
        return 0; // libomptarget reports it
    }
    return 1;
}

int local_ranks_for_libomptarget() {
    return api::g_runtime.load(std::memory_order_acquire) == nullptr ? 0
                                                                     : api::g_job.num_local_ranks;
}

constexpr diomp_offload_table table{DIOMP_OFFLOAD_TABLE_VERSION, allocate_for_libomptarget,
                                    release_for_libomptarget, local_ranks_for_libomptarget};

/// From libomptarget itself where there is one: libomp has functions of the same names, which look
/// for libomptarget's with every call.
template <typename Function>
Function *openmp_function(const char *name) {
    static void *const library = ::dlopen("libomptarget.so.19.1", RTLD_NOLOAD | RTLD_LAZY);
    void *const found = library == nullptr ? nullptr : ::dlsym(library, name);
    return reinterpret_cast<Function *>(found == nullptr ? ::dlsym(RTLD_DEFAULT, name) : found);
}

std::string describe(const char *order, int rank, const offload::devices::side &dst,
                     const offload::devices::side &src, std::size_t nbytes) {
    return fmt::format(fmt::runtime(order), fmt::arg("rank", rank), fmt::arg("dst", dst.pointer),
                       fmt::arg("dst_device", dst.device), fmt::arg("src", src.pointer),
                       fmt::arg("src_device", src.device), fmt::arg("nbytes", nbytes));
}

using side = offload::devices::side;

/// A put or get that takes no route.
[[gnu::noinline]] int move_fully(const char *function, const void *site, offload::devices::when how,
                                 int rank, const side &dst, const side &src,
                                 std::size_t nbytes) noexcept {
    bool const is_put = how.way == rma::direction::put;
    return api::call(
        function, site,
        [&] {
            return describe(is_put ? "rank={rank}, dst={dst}, dst_device={dst_device}, "
                                     "src={src}, src_device={src_device}, nbytes={nbytes}"
                                   : "dst={dst}, dst_device={dst_device}, rank={rank}, "
                                     "src={src}, src_device={src_device}, nbytes={nbytes}",
                            rank, dst, src, nbytes);
        },
        [&](runtime::runtime &running, api::account &counted) -> status {
            DIOMP_TRY(api::check_transfer(running, rank, dst.pointer, src.pointer, nbytes));
            offload::route learned;
            side const &remote = is_put ? dst : src;
            side const &local = is_put ? src : dst;
            auto moved =
                running.devices().move(how, world_rank{rank}, remote, local, nbytes, learned);
            DIOMP_TRY(moved);
            if (how.at_once && !running.transfers().all_direct()) {
                g_fast.fence_orders_only.store(false, std::memory_order_relaxed);
            }
            remember(is_put ? t_puts : t_gets, rank, remote.device, local.device, learned);
            counted = {rma::name(moved.value()), nbytes};
            return {};
        });
}

/// Where a route leads.
[[gnu::always_inline]] inline int copy_along(const offload::route &route, bool is_put, void *dst,
                                             const void *src, std::size_t nbytes) {
    offload::stretch const &to = is_put ? route.there : route.here;
    offload::stretch const &from = is_put ? route.here : route.there;
    return rma::copy_bytes(to.place(dst), from.place(src), nbytes, g_fast.stream_threshold);
}

/// A transfer by one of the other routes, or by none.
int move_otherwise(const char *function, const void *site, offload::devices::when how, int rank,
                   void *dst, int dst_device, const void *src, int src_device,
                   std::size_t nbytes) noexcept {
    bool const is_put = how.way == rma::direction::put;
    auto const *const route =
        is_put ? find_other_route(t_puts, rank, dst, dst_device, src, src_device, nbytes)
               : find_other_route(t_gets, rank, src, src_device, dst, dst_device, nbytes);
    if (route == nullptr || (is_put ? src : dst) == nullptr) {
        return move_fully(function, site, how, rank, {dst, dst_device, "dst_device"},
                          {src, src_device, "src_device"}, nbytes);
    }
    if (how.event != nullptr) {
        *how.event = nullptr;
    }
    return copy_along(*route, is_put, dst, src, nbytes);
}

// What put and get do not do inline: calls at their ends whose arguments all go in registers, so
// that the inline path saves none. Stores of saved registers are stores a fence has to wait for.

struct device_pair {
    int dst;
    int src;
};

[[gnu::noinline]] int put_otherwise(int rank, void *dst, device_pair on, const void *src,
                                    std::size_t nbytes, const void *site) noexcept {
    return move_otherwise("ompx_target_put", site, {.way = rma::direction::put}, rank, dst, on.dst,
                          src, on.src, nbytes);
}

[[gnu::noinline]] int get_otherwise(void *dst, device_pair on, int rank, const void *src,
                                    std::size_t nbytes, const void *site) noexcept {
    return move_otherwise("ompx_target_get", site, {.way = rma::direction::get}, rank, dst, on.dst,
                          src, on.src, nbytes);
}

/// Whether the current route is the one.
[[gnu::always_inline]] inline bool fits_current(bool is_put, int rank, const void *remote,
                                                int remote_device, const void *local,
                                                int local_device, std::size_t nbytes) {
    return local != nullptr && fits((is_put ? t_puts : t_gets).current, rank, remote, remote_device,
                                    local, local_device, nbytes);
}

/// By the current route.
[[gnu::always_inline]] inline int move_currently(bool is_put, void *dst, const void *src,
                                                 std::size_t nbytes) {
    return copy_along((is_put ? t_puts : t_gets).current.route, is_put, dst, src, nbytes);
}

/// The same with an event, which is null where the transfer is over at once.
int start(const char *function, const void *site, offload::devices::when how, int rank, void *dst,
          int dst_device, const void *src, int src_device, std::size_t nbytes) noexcept {
    bool const is_put = how.way == rma::direction::put;
    bool const fits_it = is_put
                             ? fits_current(true, rank, dst, dst_device, src, src_device, nbytes)
                             : fits_current(false, rank, src, src_device, dst, dst_device, nbytes);
    if (!fits_it) {
        return move_otherwise(function, site, how, rank, dst, dst_device, src, src_device, nbytes);
    }
    if (how.event != nullptr) {
        *how.event = nullptr;
    }
    return move_currently(is_put, dst, src, nbytes);
}

} // namespace

void diomp::api::publish_devices(runtime::runtime &running) {
    g_window_base.store(running.window().base());
    g_window_span.store(running.window().slot_bytes() *
                        static_cast<std::size_t>(running.window().num_slots()));
    running.devices().use(
        {
            openmp_function<int()>("omp_get_num_devices"),
            openmp_function<void *(const void *, int)>("omp_get_mapped_ptr"),
            openmp_function<void *(std::size_t, int)>("omp_target_alloc"),
            openmp_function<void(void *, int)>("omp_target_free"),
            api::driven_devices,
            [] { return g_variables.load(std::memory_order_acquire); },
            api::is_remote_device,
            runtime::offload_is_disabled(),
        },
        g_epoch);
    forget_routes();
    if (g_has_images.load(std::memory_order_acquire)) {
        running.devices().open_variables();
    }
    g_visitors.store(0, std::memory_order_release);
}

void diomp::api::images_are_registered() {
    g_has_images.store(true, std::memory_order_release);
    visit const inside;
    if (auto *const running = inside.running(); running != nullptr) {
        running->devices().open_variables();
    }
}

void diomp::api::close_devices() {
    forget_routes();
    int visitors = 0;
    while (!g_visitors.compare_exchange_weak(visitors, closed, std::memory_order_acquire)) {
        if (visitors == closed) {
            return; // an end that failed
        }
        visitors = 0;
        ::sched_yield();
    }
}

void diomp::api::forget_routes() { g_epoch.fetch_add(1, std::memory_order_acq_rel); }

extern "C" {

OMPX_API_ const diomp_offload_table *diomp_offload_table_of_runtime(void) noexcept
    __asm__("diomp_offload_table");
const diomp_offload_table *diomp_offload_table_of_runtime(void) noexcept { return &table; }

OMPX_API_ void diomp_offload_variables(const diomp_variable_table *known) noexcept;
void diomp_offload_variables(const diomp_variable_table *known) noexcept {
    if (known == nullptr) {
        visit const inside;
        if (auto *const running = inside.running(); running != nullptr) {
            running->devices().close_variables();
        }
        g_variables.store(nullptr, std::memory_order_release);
    } else if (known->version >= DIOMP_VARIABLE_TABLE_VERSION) {
        g_variables.store(known, std::memory_order_release);
    }
}

void *ompx_target_alloc(size_t nbytes, int device, uintptr_t allocator) noexcept {
    void *made = nullptr;
    api::call(
        "ompx_target_alloc", DIOMP_SITE,
        [&] {
            return fmt::format("nbytes={}, device={}, allocator={}", nbytes, device, allocator);
        },
        [&](runtime::runtime &running, api::account &counted) -> status {
            DIOMP_TRY(api::check_size(nbytes));
            ompx_mem_kind_t const kind = api::kind_of_allocator(allocator);
            if (kind == OMPX_MEM_NONE) {
                return error(OMPX_ERR_ARG, fmt::format("{} is no allocator of DiOMP", allocator),
                             "pass ompx_symmetric_mem_alloc, ompx_asymmetric_mem_alloc or "
                             "ompx_local_mem_alloc");
            }
            auto allocated = running.allocate_on_device(device, kind, nbytes);
            DIOMP_TRY(allocated);
            counted = {"device", nbytes};
            made = allocated.value();
            return {};
        });
    return made;
}

int ompx_target_free(void *ptr, int device) noexcept {
    return api::call(
        "ompx_target_free", DIOMP_SITE,
        [&] { return fmt::format("ptr={}, device={}", ptr, device); },
        [&](runtime::runtime &running, api::account &) -> status {
            return running.free_on_device(device, ptr);
        });
}

int ompx_target_put(int rank, void *dst, int dst_device, const void *src, int src_device,
                    size_t nbytes) noexcept {
    if (fits_current(true, rank, dst, dst_device, src, src_device, nbytes)) [[likely]] {
        return move_currently(true, dst, src, nbytes);
    }
    return put_otherwise(rank, dst, {dst_device, src_device}, src, nbytes, DIOMP_SITE);
}

int ompx_target_get(void *dst, int dst_device, int rank, const void *src, int src_device,
                    size_t nbytes) noexcept {
    if (fits_current(false, rank, src, src_device, dst, dst_device, nbytes)) [[likely]] {
        return move_currently(false, dst, src, nbytes);
    }
    return get_otherwise(dst, {dst_device, src_device}, rank, src, nbytes, DIOMP_SITE);
}

int ompx_target_put_nb(int rank, void *dst, int dst_device, const void *src, int src_device,
                       size_t nbytes, ompx_event_t *event) noexcept {
    return start("ompx_target_put_nb", DIOMP_SITE,
                 {.way = rma::direction::put, .at_once = true, .event = event}, rank, dst,
                 dst_device, src, src_device, nbytes);
}

int ompx_target_get_nb(void *dst, int dst_device, int rank, const void *src, int src_device,
                       size_t nbytes, ompx_event_t *event) noexcept {
    return start("ompx_target_get_nb", DIOMP_SITE,
                 {.way = rma::direction::get, .at_once = true, .event = event}, rank, dst,
                 dst_device, src, src_device, nbytes);
}

int ompx_target_segment_info(int device, ompx_segment_info_t *info) noexcept {
    return api::call(
        "ompx_target_segment_info", DIOMP_SITE, [&] { return fmt::format("device={}", device); },
        [&](runtime::runtime &running, api::account &) -> status {
            DIOMP_TRY(api::check_pointer(info, "info"));
            auto segment = running.devices().segment_of(device);
            DIOMP_TRY(segment);
            *info = segment.value()->info();
            return {};
        });
}

} // extern "C"
