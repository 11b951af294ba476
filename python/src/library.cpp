// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Errors, and the functions about this process and its job.
#include "library.h"

#include <array>
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

thread_gate g_returning;            ///< threads that take the GIL again
std::thread::id g_last_thread;      ///< set before g_returning is closed
pid_t const g_process = ::getpid(); ///< that has the threads: not a forked one

} // namespace

void thread_gate::close() {
    nb::gil_scoped_release const released;
    is_closed_.store(true);
    while (num_inside_.load() != 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

released_gil::~released_gil() {
    bool const has_entered = g_returning.enter();
    while (!has_entered && std::this_thread::get_id() != g_last_thread) {
        ::pause();
    }
    PyEval_RestoreThread(state_);
    if (has_entered) {
        g_returning.leave();
    }
}

void stop_threads() {
    if (::getpid() != g_process) {
        return;
    }
    g_last_thread = std::this_thread::get_id();
    g_returning.close();
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
