// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The extension module diomp._core. Loading it loads libdiomp, which starts the runtime.
#define DIOMP_IMPORTS_NUMPY
#include "library.h"
#include "numpy_api.h"

NB_MODULE(_core, m) {
    if (_import_array() < 0) {
        throw nanobind::python_error();
    }
    // Arrays of global memory may be alive when the interpreter ends; their memory is freed with
    // the runtime.
    nanobind::set_leak_warnings(false);
    m.doc() = "The functions of diomp.h for NumPy arrays. Programs import diomp.";
    diomp::python::bind_process(m);
    diomp::python::bind_memory(m);
    diomp::python::bind_devices(m);
    diomp::python::bind_events(m);
    diomp::python::bind_transfers(m);
    diomp::python::bind_atomics(m);
    diomp::python::bind_groups(m);
    diomp::python::bind_synchronisation(m);
    diomp::python::bind_operators(m);
    diomp::python::bind_collectives(m);
}
