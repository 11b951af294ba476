// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "events.h"

#include "operators.h"

#include <exception>
#include <set>
#include <vector>

namespace diomp::python {

namespace {

struct dropped_event {
    ompx_event_t handle;
    nb::object buffers;
};

// Never destroyed: its objects would be released after the interpreter's end. Guarded by the GIL.
std::vector<dropped_event> &dropped_events() {
    static auto *const all = new std::vector<dropped_event>;
    return *all;
}

/// Events whose operations have an operator of the program, without dropped ones. Guarded by the
/// GIL.
std::set<event *> &events_with_operators() {
    static auto *const all = new std::set<event *>;
    return *all;
}

} // namespace

event::event(event &&other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)), buffers_(std::move(other.buffers_)) {
    if (events_with_operators().erase(&other) != 0) {
        events_with_operators().insert(this);
    }
}

void event::note_operator() {
    if (handle_ != nullptr && has_user_operator(buffers_)) {
        events_with_operators().insert(this);
    }
}

event::~event() {
    events_with_operators().erase(this);
    if (handle_ != nullptr && ompx_is_initialized() == 1) {
        dropped_events().push_back({handle_, std::move(buffers_)});
    }
}

void release_dropped() {
    std::vector<dropped_event> &all = dropped_events();
    for (std::size_t i = all.size(); i-- > 0;) {
        int is_done = 0;
        // The program has given up the result, and with it the error.
        if (ompx_event_test(&all[i].handle, &is_done) != OMPX_SUCCESS || is_done != 0) {
            std::swap(all[i], all.back());
            nb::object const last = std::move(all.back().buffers);
            all.pop_back();
            forget_pending(last);
        }
    }
}

void wait_for_operators() {
    std::set<event *> &events = events_with_operators();
    while (!events.empty()) {
        event &next = **events.begin();
        events.erase(events.begin());
        try {
            next.wait();
        } catch (const std::exception &) { // the program has given up the result
            PyErr_Clear();
        }
    }
    std::vector<dropped_event> &dropped = dropped_events();
    for (std::size_t i = 0; i < dropped.size(); ++i) {
        if (has_user_operator(dropped[i].buffers)) {
            ompx_event_t handle = std::exchange(dropped[i].handle, nullptr);
            released_gil const released;
            static_cast<void>(ompx_event_wait(&handle));
        }
    }
}

void event::check_waiter() const {
    if (is_waited_for_) {
        diomp::python::fail("diomp.Event", "", OMPX_ERR_STATE,
                            "another thread waits for this event",
                            "let one thread at a time use an event");
    }
}

void event::finish() {
    nb::object const buffers = std::move(buffers_);
    throw_pending(buffers);
}

bool event::test() {
    check_waiter();
    if (handle_ != nullptr) {
        int is_done = 0;
        int const status = ompx_event_test(&handle_, &is_done);
        if (status != OMPX_SUCCESS) {
            buffers_.reset();
            throw_last(status);
        }
        if (is_done == 0) {
            return false;
        }
    }
    finish();
    return true;
}

void event::wait() {
    check_waiter();
    if (handle_ != nullptr) {
        is_waited_for_ = true;
        int status = OMPX_SUCCESS;
        {
            released_gil const released;
            status = ompx_event_wait(&handle_);
        }
        is_waited_for_ = false;
        if (status != OMPX_SUCCESS) {
            buffers_.reset();
            throw_last(status);
        }
    }
    finish();
}

void bind_events(nb::module_ &m) {
    m.def(
        "stop_operators",
        [](bool waits) {
            // A process that the program has forked has not the threads.
            if (ompx_is_initialized() == 1) {
                if (waits) {
                    wait_for_operators();
                }
                user_operator::stop();
            }
            stop_threads();
        },
        nb::arg("waits"), nb::sig("def stop_operators(waits: bool) -> None"),
        "Call before the interpreter ends: functions of the program are not called any more, and "
        "daemon threads stay in their calls. With waits, after the collectives that call "
        "functions.");
    nb::class_<event>(
        m, "Event",
        "A transfer or collective in flight. It keeps its arrays alive; they must not "
        "be used before completion. One thread at a time.")
        .def("test", &event::test, "Makes progress; True once complete. Does not block.")
        .def("wait", &event::wait, "Blocks until complete. Raises the operation's error.")
        .def(
            "__await__",
            [](nb::handle self) {
                return nb::module_::import_("diomp.events").attr("steps_until_complete")(self);
            },
            nb::sig("def __await__(self) -> collections.abc.Generator[object, None, None]"),
            "In a coroutine of asyncio: `await event` lets other tasks run until it is complete.");
}

} // namespace diomp::python
