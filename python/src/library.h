// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What all parts of the module share: status codes as exceptions, and calls without the GIL.
#pragma once

#include <atomic>
#include <diomp.h>
#include <nanobind/nanobind.h>
#include <string>

namespace diomp::python {

namespace nb = nanobind;

/// Throws diomp.Error with a status and the text of this thread's last failed call.
[[noreturn]] void throw_last(int status);
/// Reports an error that only the binding can see in the way of diomp.h's functions (DIOMP_ERRORS),
/// then throws diomp.Error.
[[noreturn]] void fail(const char *function, const std::string &arguments, int status,
                       const std::string &what, const std::string &remedy);

/// Returns a status that is not negative; throws diomp.Error for others.
inline int check(int status) {
    if (status < 0) [[unlikely]] {
        throw_last(status);
    }
    return status;
}

/// Counts the threads in a section of code until it is closed.
class thread_gate {
public:
    /// False: it is closed. Otherwise leave() must follow.
    bool enter() {
        num_inside_.fetch_add(1);
        if (is_closed_.load()) {
            leave();
            return false;
        }
        return true;
    }
    void leave() { num_inside_.fetch_sub(1); }
    /// Blocks without the GIL until no thread is inside. Call with the GIL.
    void close();

private:
    std::atomic<bool> is_closed_ = false;
    std::atomic<int> num_inside_ = 0;
};

/// Releases the GIL while it exists. Once stop_threads() has been called, other threads than its
/// caller do not return from the destructor: CPython before 3.14 would end them in it by
/// pthread_exit, which a destructor must not let through.
class released_gil {
public:
    released_gil() : state_(PyEval_SaveThread()) {}
    ~released_gil();
    released_gil(const released_gil &) = delete;
    released_gil &operator=(const released_gil &) = delete;

private:
    PyThreadState *state_;
};
/// Call with the GIL, in the thread that ends the interpreter. Blocks until threads that were about
/// to take the GIL have it.
void stop_threads();

/// Runs a call that may block without the GIL.
template <typename Call>
void run(Call &&call) {
    int status = OMPX_SUCCESS;
    {
        released_gil const released;
        status = call();
    }
    check(status);
}

/// Whether all ranks share this rank's node: transfers are then copies that never wait.
[[nodiscard]] bool is_single_node();

void bind_process(nb::module_ &m);
void bind_memory(nb::module_ &m);
void bind_devices(nb::module_ &m);
void bind_transfers(nb::module_ &m);
void bind_atomics(nb::module_ &m);
void bind_synchronisation(nb::module_ &m);
void bind_groups(nb::module_ &m);
void bind_events(nb::module_ &m);
void bind_operators(nb::module_ &m);
void bind_collectives(nb::module_ &m);
void bind_variable_collectives(nb::module_ &m);

} // namespace diomp::python
