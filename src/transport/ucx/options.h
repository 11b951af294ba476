// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace diomp::transport::ucx {

struct options {
    int workers = 0;           ///< threads that inject concurrently; 0: from the number of cores
    bool limits_access = true; ///< to hosts of the job: see net_access.h
};

} // namespace diomp::transport::ucx
