// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/**
 * @file diomp.hpp
 * DiOMP for C++20: types over the calls of diomp.h. Semantics are those of diomp.h; each type says
 * which calls it makes. Header only. Copy what the names say: nothing communicates behind an
 * innocent-looking expression except global_ref (`*p`, `p[i]`), which is a single get or put.
 *
 * Errors. A negative status becomes a diomp::error. With the default DIOMP_ERRORS=abort the runtime
 * ends the job before that; DIOMP_ERRORS=return makes the exceptions visible. Destructors ignore
 * errors. Without exceptions (-fno-exceptions) an error ends the job with its text.
 *
 * Collective constructors and destructors ("Collective" in their comment) follow the rule of
 * diomp.h: all members, same order. Objects of static storage duration may outlive the runtime;
 * their destructors then release nothing, since the memory is gone already.
 */
#ifndef DIOMP_HPP
#define DIOMP_HPP

#include "diomp.h"
#include "diomp/atomic.hpp"
#include "diomp/collective.hpp"
#include "diomp/device.hpp"
#include "diomp/error.hpp"
#include "diomp/event.hpp"
#include "diomp/global_ptr.hpp"
#include "diomp/group.hpp"
#include "diomp/lock.hpp"
#include "diomp/memory.hpp"
#include "diomp/symmetric_array.hpp"
#include "diomp/types.hpp"

#endif // DIOMP_HPP
