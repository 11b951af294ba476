// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/service/image.h"
#include "offload/service/target.h"

#include <fmt/format.h>

#include <cstring>
#include <ffi.h>

namespace diomp::offload::service {
namespace {

class cpu_target final : public target {
public:
    /// The network reaches variables of images.
    cpu_target() : target({.own_memory = transport::memory_kind::host}) {}

    result<std::vector<remote::location>>
    load(const std::string &file, const remote::image_id &id,
         const std::vector<remote::symbol> &symbols) override {
        return images_.load(file, id, symbols);
    }
    [[nodiscard]] const std::string *kernel_name(std::uint64_t kernel) const override {
        return images_.name_of(kernel);
    }

    status write(std::uint64_t to, const void *from, std::size_t nbytes) override {
        DIOMP_TRY(check(to, nbytes));
        std::memcpy(to_pointer(to), from, nbytes);
        return {};
    }
    status read(void *to, std::uint64_t from, std::size_t nbytes) override {
        DIOMP_TRY(check(from, nbytes));
        std::memcpy(to, to_pointer(from), nbytes);
        return {};
    }
    status copy(std::uint64_t to, std::uint64_t from, std::size_t nbytes) override {
        DIOMP_TRY(check(to, nbytes));
        DIOMP_TRY(check(from, nbytes));
        std::memmove(to_pointer(to), to_pointer(from), nbytes);
        return {};
    }
    [[nodiscard]] bool is_loadable(std::uint64_t address, std::size_t nbytes) const override {
        return slot_.has(address, nbytes) || images_.has(address, nbytes);
    }

    [[nodiscard]] result<network_range> retain(std::uint64_t address,
                                               std::size_t nbytes) const override {
        DIOMP_TRY(check(address, nbytes));
        return network_range{};
    }

    status launch(const remote::launch_arguments &launch) override;
    void unload() override { images_.unload(); }

private:
    [[nodiscard]] status check(std::uint64_t address, std::size_t nbytes) const {
        if (is_loadable(address, nbytes)) {
            return {};
        }
        return error(OMPX_ERR_RANGE, fmt::format("{} bytes at {:#x} are not memory of the device",
                                                 nbytes, address));
    }

    image_set images_;
};

status cpu_target::launch(const remote::launch_arguments &launch) {
    std::size_t const count = launch.arguments.size() / sizeof(std::uint64_t);
    std::vector<std::uint64_t> values(count);
    std::memcpy(values.data(), launch.arguments.data(), count * sizeof(std::uint64_t));
    std::vector<ffi_type *> types(count, &ffi_type_pointer);
    std::vector<void *> arguments;
    arguments.reserve(count);
    for (std::uint64_t &value : values) {
        arguments.push_back(&value);
    }
    ffi_cif call;
    if (ffi_prep_cif(&call, FFI_DEFAULT_ABI, static_cast<unsigned>(count), &ffi_type_void,
                     types.data()) != FFI_OK) {
        return error(OMPX_ERR_SYSTEM, "libffi cannot call the kernel");
    }
    ffi_call(&call, FFI_FN(to_pointer(launch.kernel)), nullptr, arguments.data());
    return {};
}

} // namespace

std::unique_ptr<target> make_cpu_target() { return std::make_unique<cpu_target>(); }

} // namespace diomp::offload::service
