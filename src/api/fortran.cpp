// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Errors of the Fortran module, whose own library knows nothing of the runtime's inside.
#include "api/fortran.h"

#include "api/state.h"

using namespace diomp;

int ompx_fortran_misuse(const char *function, const char *arguments, int status, const char *what,
                        const char *remedy) noexcept {
    return api::call(
        function, DIOMP_SITE, [&] { return std::string(arguments); },
        [&](runtime::runtime &, api::account &) -> diomp::status {
            return error(static_cast<ompx_status>(status), what, remedy);
        });
}
