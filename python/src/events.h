// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A transfer or collective in flight, with the objects that it uses.
#pragma once

#include "library.h"

#include <utility>

namespace diomp::python {

/// Owns an ompx_event_t and keeps its buffers alive. An event that the program drops before
/// completion goes to a list: the garbage collector must neither wait nor release buffers in use.
class event {
public:
    explicit event(nb::object buffers) : buffers_(std::move(buffers)) {}
    event(event &&other) noexcept;
    event(const event &) = delete;
    event &operator=(const event &) = delete;
    event &operator=(event &&) = delete;
    ~event();

    /// For the call that starts the operation.
    [[nodiscard]] ompx_event_t *handle() { return &handle_; }
    /// Call when the operation has started, if it has an operator of the program.
    void note_operator();
    /// Makes progress; true once complete.
    [[nodiscard]] bool test();
    /// Blocks until complete, without the GIL.
    void wait();

private:
    void check_waiter() const;
    void finish();

    ompx_event_t handle_ = nullptr;
    bool is_waited_for_ = false; ///< another thread is in wait()
    nb::object buffers_;
};

/// Starts an operation: `call` gets a pointer to the event. Releases the completed ones among those
/// that were dropped.
template <typename Call>
[[nodiscard]] event start(nb::object buffers, Call &&call);
void release_dropped();
/// Waits for operations that call functions of the program. Call before the interpreter ends.
void wait_for_operators();

template <typename Call>
event start(nb::object buffers, Call &&call) {
    release_dropped();
    event started(std::move(buffers));
    run([&] { return call(started.handle()); });
    started.note_operator();
    return started;
}

} // namespace diomp::python
