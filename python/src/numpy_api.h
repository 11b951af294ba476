// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// NumPy's C interface; one table of its functions for the module, which module.cpp imports.
#pragma once

#include <nanobind/nanobind.h>

#define PY_ARRAY_UNIQUE_SYMBOL diomp_numpy_api
#define NPY_NO_DEPRECATED_API NPY_1_23_API_VERSION
#if !defined(DIOMP_IMPORTS_NUMPY)
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>
