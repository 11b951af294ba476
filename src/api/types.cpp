// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "diomp/atomic.h"

extern "C" size_t ompx_type_size(ompx_type_t type) noexcept {
    switch (type) {
    case OMPX_INT8:
    case OMPX_UINT8:
    case OMPX_BOOL:
        return 1;
    case OMPX_INT16:
    case OMPX_UINT16:
    case OMPX_FLOAT16:
    case OMPX_BFLOAT16:
        return 2;
    case OMPX_INT32:
    case OMPX_UINT32:
    case OMPX_FLOAT:
        return 4;
    case OMPX_INT64:
    case OMPX_UINT64:
    case OMPX_DOUBLE:
    case OMPX_FLOAT_COMPLEX:
        return 8;
    case OMPX_LONG_DOUBLE:
        return sizeof(long double);
    case OMPX_DOUBLE_COMPLEX:
        return 16;
    case OMPX_FLOAT_INT:
    case OMPX_2INT:
    case OMPX_SHORT_INT:
    case OMPX_2FLOAT:
        return sizeof(ompx_float_int_t);
    case OMPX_DOUBLE_INT:
    case OMPX_LONG_INT:
    case OMPX_2DOUBLE:
    case OMPX_2INT64:
    case OMPX_DOUBLE_INT64:
        return sizeof(ompx_double_int_t);
    case OMPX_LONG_DOUBLE_INT:
        return sizeof(ompx_long_double_int_t);
    default:
        return type > 0x10000 && type < 0x20000 ? static_cast<size_t>(type - 0x10000) : 0;
    }
}
