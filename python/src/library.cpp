// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Errors, and the functions about this process and its job.
#include "library.h"

#include <array>
#include <atomic>
#include <chrono>
#include <diomp/binding.hpp>
#include <nanobind/stl/string.h>
#include <thread>
#include <unistd.h>

namespace diomp::python {

void throw_last(int status) {
    const char *text = ompx_last_error();
    if (*text == '\0') {
        text = ompx_status_string(status);
    }
    nb::object const type = nb::module_::import_("diomp.errors").attr("Error");
    nb::object const raised = type(status, nb::str(text));
    PyErr_SetObject(type.ptr(), raised.ptr());
    throw nb::python_error();
}

void fail(const char *function, const std::string &arguments, int status, const std::string &what,
          const std::string &remedy) {
    throw_last(
        ompx_fortran_misuse(function, arguments.c_str(), status, what.c_str(), remedy.c_str()));
}

namespace {

std::atomic<bool> g_are_threads_stopped = false;
std::atomic<int> g_num_returning = 0; ///< threads that take the GIL again
std::thread::id g_last_thread;        ///< set before g_are_threads_stopped
pid_t const g_process = ::getpid();   ///< that has the threads: not a forked one

} // namespace

released_gil::~released_gil() {
    g_num_returning.fetch_add(1);
    if (g_are_threads_stopped.load() && std::this_thread::get_id() != g_last_thread) {
        g_num_returning.fetch_sub(1);
        for (;;) {
            ::pause();
        }
    }
    PyEval_RestoreThread(state_);
    g_num_returning.fetch_sub(1);
}

void stop_threads() {
    if (::getpid() != g_process) {
        return;
    }
    g_last_thread = std::this_thread::get_id();
    g_are_threads_stopped.store(true);
    nb::gil_scoped_release const released;
    while (g_num_returning.load() != 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

bool is_single_node() {
    static bool const is_single = ompx_num_local_ranks() == ompx_num_ranks();
    return is_single;
}

namespace {

std::string path_info(int rank) {
    std::array<char, 4096> text{};
    check(ompx_path_info(rank, text.data(), text.size()));
    return text.data();
}

} // namespace

void bind_process(nb::module_ &m) {
    m.def("rank", [] { return check(ompx_rank_num()); }, "This rank, counted from 0.");
    m.def("num_ranks", [] { return check(ompx_num_ranks()); }, "Number of ranks.");
    m.def(
        "local_rank", [] { return check(ompx_local_rank_num()); },
        "This rank among the ranks of its node.");
    m.def(
        "num_local_ranks", [] { return check(ompx_num_local_ranks()); },
        "Number of ranks of this node.");
    m.def(
        "is_initialized", [] { return ompx_is_initialized() == 1; },
        "Whether the runtime runs: from the import to finalize().");
    m.def(
        "finalize", [] { run([] { return ompx_finalize(); }); },
        "Ends the runtime. Collective; waits for all ranks. Done at exit anyway. Arrays in global "
        "memory must not be used afterwards.");
    m.def(
        "abort", [](int code) { ompx_abort(code); }, nb::arg("code") = 1,
        "Ends all ranks of the job at once with this exit status.");
    m.def(
        "return_errors", [] { check(ompx_set_errors(OMPX_ERRORS_RETURN, OMPX_SCOPE_LIBRARY)); },
        "Calls of this process return their errors, whichever library they are made from.");
    m.def("path_info", path_info, nb::arg("rank"),
          "The path of transfers to a rank and the reason for it, such as 'shm'.");
    m.def(
        "status_string", [](int status) { return std::string(ompx_status_string(status)); },
        nb::arg("status"), "Text of a status code.");
}

} // namespace diomp::python
