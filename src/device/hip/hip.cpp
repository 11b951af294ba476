// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/hip/hip.h"

#include "base/sizes.h"
#include "device/hip/memory.h"
#include "device/hip/queue.h"
#include "device/kernels/choice.h"
#include "device/numa.h"

namespace diomp::device::hip {

hip_backend::hip_backend(std::shared_ptr<const library> runtime, int num_devices)
    : runtime_(std::move(runtime)), num_devices_(num_devices) {
    for (int device = 0; device < num_devices; ++device) {
        kernels_.push_back(std::make_shared<device_kernels>(runtime_, device));
    }
}

result<properties> hip_backend::describe(device_id device) {
    DIOMP_TRY(check_device(*this, device));
    int const number = device.value();
    auto const query = [&](code outcome, const char *call) {
        return check(*runtime_, outcome, call);
    };
    properties found;
    char text[256] = {};
    DIOMP_TRY(query(runtime_->device_get_name(text, sizeof(text) - 1, number), "hipDeviceGetName"));
    found.name = text;
    auto id = uuid_of(device);
    DIOMP_TRY(id);
    found.uuid = id.value();
    DIOMP_TRY(query(runtime_->device_get_pci_bus_id(text, sizeof(text) - 1, number),
                    "hipDeviceGetPCIBusId"));
    found.pci_bus_id = text;
    found.numa_node = numa_node_of(found.pci_bus_id);
    DIOMP_TRY(
        query(runtime_->device_get_attribute(&found.multiprocessors, multiprocessor_count, number),
              "hipDeviceGetAttribute"));
    found.memory_shares = true;
    auto scope = current_device::enter(*runtime_, number);
    DIOMP_TRY(scope);
    DIOMP_TRY(
        query(runtime_->mem_get_info(&found.free_bytes, &found.total_bytes), "hipMemGetInfo"));
    return found;
}

result<device_uuid> hip_backend::uuid_of(device_id device) {
    DIOMP_TRY(check_device(*this, device));
    uuid found;
    DIOMP_TRY(
        check(*runtime_, runtime_->device_get_uuid(&found, device.value()), "hipDeviceGetUuid"));
    return found.bytes;
}

result<std::unique_ptr<memory>> hip_backend::reserve_at(device_id device, std::size_t max_bytes,
                                                        std::uint64_t /*preferred*/) {
    DIOMP_TRY(check_device(*this, device));
    if (max_bytes == 0) {
        return error(OMPX_ERR_ARG, "a reservation of device memory cannot be empty");
    }
    return allocate(runtime_, device.value(), max_bytes);
}

result<std::unique_ptr<peer_memory>> hip_backend::open_shared(device_id device,
                                                              const shared_handle &handle) {
    DIOMP_TRY(check_device(*this, device));
    return open(runtime_, device.value(), handle);
}

result<bool> hip_backend::can_access(device_id device, device_id other) {
    DIOMP_TRY(check_device(*this, device));
    DIOMP_TRY(check_device(*this, other));
    if (device == other) {
        return true;
    }
    int can = 0;
    DIOMP_TRY(check(*runtime_,
                    runtime_->device_can_access_peer(&can, device.value(), other.value()),
                    "hipDeviceCanAccessPeer"));
    if (can == 0) {
        return false;
    }
    auto scope = current_device::enter(*runtime_, device.value());
    DIOMP_TRY(scope);
    code const outcome = runtime_->device_enable_peer_access(other.value(), 0);
    if (outcome != peer_access_already_enabled) {
        DIOMP_TRY(check(*runtime_, outcome, "hipDeviceEnablePeerAccess"));
    }
    return true;
}

result<std::unique_ptr<queue>> hip_backend::make_queue(device_id device) {
    DIOMP_TRY(check_device(*this, device));
    return hip::make_queue(runtime_, device.value(),
                           kernels_[static_cast<std::size_t>(device.value())]);
}

bool hip_backend::can_reduce(device_id device, const reduction &how) {
    auto const chosen = kernels::choose(how);
    if (!chosen || !check_device(*this, device)) {
        return false;
    }
    auto scope = current_device::enter(*runtime_, device.value());
    return scope && kernels_[static_cast<std::size_t>(device.value())]->find(chosen->name);
}

namespace {
class hip_scope final : public current_scope {
public:
    hip_scope(std::shared_ptr<const library> runtime, current_device scope)
        : runtime_(std::move(runtime)), scope_(std::move(scope)) {}

private:
    std::shared_ptr<const library> runtime_; ///< destroyed after the scope
    current_device scope_;
};
} // namespace

result<std::unique_ptr<current_scope>> hip_backend::make_current(device_id device) {
    DIOMP_TRY(check_device(*this, device));
    auto scope = current_device::enter(*runtime_, device.value());
    DIOMP_TRY(scope);
    return std::unique_ptr<current_scope>(std::make_unique<hip_scope>(runtime_, scope.take()));
}

result<pinned_memory> hip_backend::allocate_pinned(std::size_t nbytes) {
    void *base = nullptr;
    code const outcome =
        runtime_->host_malloc(&base, nbytes == 0 ? 1 : nbytes, host_alloc_portable);
    if (outcome != success) {
        return hip_error(*runtime_, "hipHostMalloc of " + format_size(nbytes), outcome);
    }
    return pinned_memory(base, nbytes, [runtime = runtime_](void *address) {
        report(*runtime, runtime->host_free(address), "hipHostFree");
    });
}

result<pinned_memory> hip_backend::pin(void *base, std::size_t nbytes) {
    DIOMP_TRY(check(*runtime_, runtime_->host_register(base, nbytes, host_register_portable),
                    "hipHostRegister"));
    return pinned_memory(base, nbytes, [runtime = runtime_](void *address) {
        report(*runtime, runtime->host_unregister(address), "hipHostUnregister");
    });
}

std::optional<device_id> hip_backend::owner_of(const void *address) {
    // HIP does not write to the address; its parameter only lacks the const.
    void *const wanted = const_cast<void *>(address);
    unsigned type = 0;
    int number = -1;
    // HIP returns an error for an address that it does not know; it is host memory then.
    if (runtime_->pointer_get_attribute(&type, pointer_memory_type, wanted) != success ||
        type != memory_type_device ||
        runtime_->pointer_get_attribute(&number, pointer_device_ordinal, wanted) != success ||
        number < 0 || number >= num_devices()) {
        return {};
    }
    return device_id(number);
}

} // namespace diomp::device::hip

namespace diomp::device {

namespace {

struct visible_hip {
    std::shared_ptr<const hip::library> runtime;
    int count = 0; ///< at least 1
};

result<visible_hip> find_hip(const library_path_option &option) {
    auto runtime = hip::load_library(option.path);
    DIOMP_TRY(runtime);
    int count = 0;
    // Depending on the driver, having no device is a count of 0 or an error.
    hip::code const outcome = runtime.value()->get_device_count(&count);
    if (outcome == hip::no_device || (outcome == hip::success && count == 0)) {
        return error(OMPX_ERR_UNSUPPORTED, "HIP's runtime shows no device",
                     "see rocminfo and HIP_VISIBLE_DEVICES");
    }
    DIOMP_TRY(hip::check(*runtime.value(), outcome, "hipGetDeviceCount"));
    return visible_hip{runtime.take(), count};
}

} // namespace

result<std::unique_ptr<backend>> create_hip(const library_path_option &option) {
    auto found = find_hip(option);
    DIOMP_TRY(found);
    return std::unique_ptr<backend>(
        std::make_unique<hip::hip_backend>(found.value().runtime, found.value().count));
}

result<std::vector<int>> numa_nodes_of_hip(const library_path_option &option) {
    auto found = find_hip(option);
    DIOMP_TRY(found);
    hip::library const &runtime = *found.value().runtime;
    std::vector<int> nodes;
    for (int device = 0; device < found.value().count; ++device) {
        char text[64] = {};
        DIOMP_TRY(hip::check(runtime, runtime.device_get_pci_bus_id(text, sizeof(text) - 1, device),
                             "hipDeviceGetPCIBusId"));
        nodes.push_back(numa_node_of(text));
    }
    return nodes;
}

} // namespace diomp::device
