// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// litmus.h with operations by the code of GPUs, on an endpoint. Included inside an anonymous
// namespace.

using litmus_by = diomp_endpoint *;

int litmus_put(litmus_by by, int rank, void *dst, const void *src, std::uint64_t nbytes) {
    return diomp_device_put(by, DIOMP_CALL_PUT, rank, dst, src, nbytes, {0, 1}, nullptr);
}
int litmus_get(litmus_by by, void *dst, int rank, const void *src, std::uint64_t nbytes) {
    return diomp_device_get(by, DIOMP_CALL_GET, dst, rank, src, nbytes, {0, 1}, nullptr);
}
int litmus_fence(litmus_by by) {
    diomp_call const call{DIOMP_CALL_FENCE, -1, {}};
    diomp_fence_system();
    return diomp_ring_fence(by, &call);
}
int litmus_put_signal(litmus_by by, int rank, void *dst, const void *src, std::uint64_t nbytes,
                      std::uint64_t *signal, std::uint64_t value) {
    return diomp_device_put_signal(by, rank, dst, src, nbytes, {signal, value, OMPX_SIGNAL_SET});
}
int litmus_signal_wait(litmus_by by, const std::uint64_t *signal, std::uint64_t value) {
    diomp_call const call{DIOMP_CALL_SIGNAL_WAIT, -1, {}};
    return diomp_device_wait(by, &call, signal, {8, 0, OMPX_CMP_GE, value});
}
int litmus_flag_wait(litmus_by by, const std::uint64_t *flag, std::uint64_t value) {
    return diomp_device_wait_until(by, flag, OMPX_UINT64, OMPX_CMP_GE, &value);
}
bool litmus_is_mapped(litmus_by by, const void *address, int rank) {
    return diomp_device_is_mapped(by, rank, address, 8) != 0;
}

#include "offload/litmus.h"
