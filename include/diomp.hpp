// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/**
 * @file diomp.hpp
 * DiOMP for C++20: types over the functions of diomp.h, with the semantics of diomp.h. Header only.
 * Only named functions communicate, with one exception: reading or assigning a global_ref (`*p`,
 * `p[i]`) is a single get or put.
 *
 * Errors. A negative status is thrown as a diomp::error. With the default DIOMP_ERRORS=abort the
 * runtime ends the job first; use DIOMP_ERRORS=return, ompx_set_errors() or an errors_guard to get
 * exceptions. Destructors ignore errors.
 * Without exceptions (-fno-exceptions) an error prints its text and ends the job.
 *
 * Collective constructors and destructors ("Collective" in their comment) must be called by all
 * members in the same order. Objects of static storage duration may outlive the runtime; their
 * destructors then do nothing, since the memory has been released already.
 */
#ifndef DIOMP_HPP
#define DIOMP_HPP

#if __cplusplus < 201709L // GCC 10 with -std=c++20
#error "diomp.hpp needs C++20: compile with -std=c++20"
#else

#include "diomp.h"
#include "diomp/atomic.hpp"
#include "diomp/box.hpp"
#include "diomp/cart.hpp"
#include "diomp/channel.hpp"
#include "diomp/collective.hpp"
#include "diomp/context.hpp"
#include "diomp/device.hpp"
#include "diomp/error.hpp"
#include "diomp/event.hpp"
#include "diomp/global_ptr.hpp"
#include "diomp/group.hpp"
#include "diomp/lock.hpp"
#include "diomp/memory.hpp"
#include "diomp/plan.hpp"
#include "diomp/symmetric_array.hpp"
#include "diomp/types.hpp"
#include "diomp/wait.hpp"

#endif // C++20

#endif // DIOMP_HPP
