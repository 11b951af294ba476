// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Values for gdb_printers.sh, which stops in `stop_here`.
#include "base/ids.h"
#include "base/result.h"
#include "transport/types.h"

namespace {

[[gnu::noinline]] void stop_here(const volatile void *) { asm volatile("" ::: "memory"); }

} // namespace

int main() {
    diomp::world_rank const rank(3);
    diomp::local_rank const unset;
    diomp::status const fine;
    diomp::status const bad =
        diomp::error(OMPX_ERR_RANGE, "12 bytes exceed the segment", "pass fewer");
    diomp::result<int> const number(42);
    diomp::transport::completion idle;
    diomp::transport::completion busy;
    busy.begin();
    busy.begin();
    busy.end(OMPX_ERR_PEER);
    const volatile void *const all[] = {&rank, &unset, &fine, &bad, &number, &idle, &busy};
    stop_here(&all);
    return 0;
}
