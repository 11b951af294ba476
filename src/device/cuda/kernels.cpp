// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/cuda/kernels.h"

#include "base/log.h"
#include "device/kernels/embedded.h"

#include <string_view>

namespace diomp::device::cuda {
namespace {

/// A type as kernels know it.
struct element {
    std::string_view name;
    std::string_view without_sign; ///< the same for integers of either sign; empty: no integer
    std::size_t nbytes = 0;        ///< 0: kernels do not know the type
};

element element_of(ompx_type_t type) {
    switch (type) {
    case OMPX_INT8:
        return {"i8", "u8", 1};
    case OMPX_UINT8:
    case OMPX_BOOL:
        return {"u8", "u8", 1};
    case OMPX_INT16:
        return {"i16", "u16", 2};
    case OMPX_UINT16:
        return {"u16", "u16", 2};
    case OMPX_INT32:
        return {"i32", "u32", 4};
    case OMPX_UINT32:
        return {"u32", "u32", 4};
    case OMPX_INT64:
        return {"i64", "u64", 8};
    case OMPX_UINT64:
        return {"u64", "u64", 8};
    case OMPX_FLOAT16:
        return {"f16", "", 2};
    case OMPX_BFLOAT16:
        return {"bf16", "", 2};
    case OMPX_FLOAT:
        return {"f32", "", 4};
    case OMPX_DOUBLE:
        return {"f64", "", 8};
    default:
        return {};
    }
}

const char *word_of(ompx_op_t op) {
    switch (op) {
    case OMPX_SUM:
        return "sum";
    case OMPX_PROD:
        return "prod";
    case OMPX_MIN:
        return "min";
    case OMPX_MAX:
        return "max";
    case OMPX_LAND:
        return "land";
    case OMPX_LOR:
        return "lor";
    case OMPX_BAND:
        return "band";
    case OMPX_BOR:
        return "bor";
    case OMPX_BXOR:
        return "bxor";
    case OMPX_AVG:
        return "avg";
    default:
        return nullptr;
    }
}

kernel_choice named(ompx_op_t op, std::string_view of, std::size_t nbytes, std::size_t parts = 1) {
    return {std::string("diomp_reduce_") + word_of(op) + '_' + std::string(of), nbytes, parts};
}

std::optional<kernel_choice> choose_complex(ompx_op_t op, bool is_double) {
    if (op == OMPX_SUM || op == OMPX_AVG) { // real and imaginary parts by themselves
        return is_double ? named(op, "f64", 8, 2) : named(op, "f32", 4, 2);
    }
    if (op == OMPX_PROD) {
        return is_double ? named(op, "c64", 16) : named(op, "c32", 8);
    }
    return std::nullopt;
}

} // namespace

std::optional<kernel_choice> choose_kernel(const reduction &how) {
    if (word_of(how.op) == nullptr) {
        return std::nullopt;
    }
    if (how.type == OMPX_FLOAT_COMPLEX || how.type == OMPX_DOUBLE_COMPLEX) {
        return choose_complex(how.op, how.type == OMPX_DOUBLE_COMPLEX);
    }
    element const of = element_of(how.type);
    if (of.nbytes == 0) {
        return std::nullopt;
    }
    bool const is_integer = !of.without_sign.empty();
    switch (how.op) {
    case OMPX_BAND:
    case OMPX_BOR:
    case OMPX_BXOR:
        return is_integer ? std::optional(named(how.op, "u8", 1, of.nbytes)) : std::nullopt;
    case OMPX_SUM:
    case OMPX_PROD:
        if (how.type == OMPX_BOOL) {
            return std::nullopt;
        }
        [[fallthrough]];
    case OMPX_LAND:
    case OMPX_LOR:
        return named(how.op, is_integer ? of.without_sign : of.name, of.nbytes);
    case OMPX_AVG:
        return how.type == OMPX_BOOL ? std::nullopt
                                     : std::optional(named(how.op, of.name, of.nbytes));
    default:
        return named(how.op, of.name, of.nbytes);
    }
}

status kernel_module::load(const library &driver) {
    const char *const text = kernels::reduction_ptx();
    if (text == nullptr) {
        return error(OMPX_ERR_UNSUPPORTED, "this build of the runtime has no kernels for GPUs");
    }
    return check(driver, driver.module_load_data(&module_, text), "cuModuleLoadData");
}

result<kernel_handle> kernel_module::find(const library &driver, ordinal device,
                                          const std::string &name) {
    std::lock_guard const guard(mutex_);
    if (module_ == nullptr && !failure_) {
        if (status loaded = load(driver); !loaded) {
            failure_ = loaded.take_failure();
            log(log_level::info, "CUDA device {} does not reduce: {}", device, failure_->message());
        }
    }
    if (failure_) {
        return error(failure_->code(), failure_->message(), failure_->remedy());
    }
    auto const known = known_.find(name);
    if (known != known_.end()) {
        return known->second;
    }
    kernel_handle found = nullptr;
    DIOMP_TRY(check(driver, driver.module_get_function(&found, module_, name.c_str()),
                    "cuModuleGetFunction"));
    return known_[name] = found;
}

void kernel_module::unload(const library &driver) noexcept {
    report(driver, driver.module_unload(module_), "cuModuleUnload");
}

} // namespace diomp::device::cuda
