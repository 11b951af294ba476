// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "stacks/internal/unwind.h"

#include <ucontext.h>
#include <unwind.h>

namespace diomp::stacks {
namespace {

struct progress {
    std::span<std::uintptr_t> into;
    std::uintptr_t interrupted_at;
    std::size_t num = 0;
};

std::uintptr_t program_counter(const void *context) {
    if (context == nullptr) {
        return 0;
    }
    auto const &machine = static_cast<const ucontext_t *>(context)->uc_mcontext;
#if defined(__x86_64__)
    return static_cast<std::uintptr_t>(machine.gregs[REG_RIP]);
#elif defined(__aarch64__)
    return machine.pc;
#else
#error "unsupported processor: read the program counter from its context here"
#endif
}

_Unwind_Reason_Code record_frame(_Unwind_Context *frame, void *argument) {
    auto &now = *static_cast<progress *>(argument);
    int is_exact = 0; // nonzero: not the address after a call
    std::uintptr_t const address = _Unwind_GetIPInfo(frame, &is_exact);
    if (address == 0) {
        return _URC_END_OF_STACK;
    }
    if (address == now.interrupted_at) {
        now.num = 0; // the frames so far belong to the handler
        now.interrupted_at = 0;
    }
    if (now.num == now.into.size()) {
        return _URC_END_OF_STACK;
    }
    now.into[now.num++] = is_exact != 0 ? address : address - 1;
    return _URC_NO_REASON;
}

} // namespace

std::size_t unwind(std::span<std::uintptr_t> into, const void *interrupted) {
    progress now{into, program_counter(interrupted)};
    _Unwind_Backtrace(record_frame, &now);
    if (now.interrupted_at != 0 && !into.empty()) {
        into[0] = now.interrupted_at; // the handler's frames could not be unwound
        return 1;
    }
    return now.num;
}

} // namespace diomp::stacks
