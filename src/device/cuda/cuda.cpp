// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/cuda/cuda.h"

#include "base/sizes.h"
#include "device/cuda/memory.h"
#include "device/cuda/queue.h"
#include "device/kernels/choice.h"
#include "device/numa.h"

namespace diomp::device::cuda {

// CUDA numbers its devices 0, 1, ... and cuDeviceGet has returned the number as the device since
// there were two; libomptarget's plugin relies on it as well.

result<std::shared_ptr<context>> cuda_backend::context_of(device_id device) {
    DIOMP_TRY(check_device(*this, device));
    std::lock_guard const guard(mutex_);
    auto &known = contexts_[device.index()];
    if (known == nullptr) {
        auto made = context::retain(driver_, device.value());
        DIOMP_TRY(made);
        known = made.take();
    }
    return known;
}

result<std::shared_ptr<context>> cuda_backend::any_context() {
    {
        std::lock_guard const guard(mutex_);
        for (auto const &each : contexts_) {
            if (each != nullptr) {
                return each;
            }
        }
    }
    return context_of(device_id(0));
}

result<properties> cuda_backend::describe(device_id device) {
    DIOMP_TRY(check_device(*this, device));
    ordinal const number = device.value();
    auto const query = [&](code outcome, const char *call) {
        return check(*driver_, outcome, call);
    };
    properties found;
    char text[256] = {};
    DIOMP_TRY(query(driver_->device_get_name(text, sizeof(text) - 1, number), "cuDeviceGetName"));
    found.name = text;
    auto id = uuid_of(device);
    DIOMP_TRY(id);
    found.uuid = id.value();
    DIOMP_TRY(query(driver_->device_get_pci_bus_id(text, sizeof(text) - 1, number),
                    "cuDeviceGetPCIBusId"));
    found.pci_bus_id = text;
    found.numa_node = numa_node_of(found.pci_bus_id);
    DIOMP_TRY(query(driver_->device_total_mem(&found.total_bytes, number), "cuDeviceTotalMem"));
    DIOMP_TRY(
        query(driver_->device_get_attribute(&found.multiprocessors, multiprocessor_count, number),
              "cuDeviceGetAttribute"));
    int by_service = 0;
    found.is_shared_by_service =
        driver_->device_get_attribute(&by_service, mps_enabled, number) == success &&
        by_service != 0;
    auto can = memory_capabilities_of(*driver_, number);
    DIOMP_TRY(can);
    found.memory_grows = can.value().has_virtual_memory;
    found.memory_shares = !can.value().has_virtual_memory || can.value().exports_descriptors;

    // Free memory can be queried only in a context: a temporary one if the device is not in use.
    std::shared_ptr<context> here;
    {
        std::lock_guard const guard(mutex_);
        here = contexts_[device.index()];
    }
    if (here == nullptr) {
        auto transient = context::retain(driver_, number);
        DIOMP_TRY(transient);
        here = transient.take();
    }
    auto scope = context::current::enter(*here);
    DIOMP_TRY(scope);
    std::size_t total = 0;
    DIOMP_TRY(query(driver_->mem_get_info(&found.free_bytes, &total), "cuMemGetInfo"));
    return found;
}

result<device_uuid> cuda_backend::uuid_of(device_id device) {
    DIOMP_TRY(check_device(*this, device));
    uuid found;
    DIOMP_TRY(check(*driver_, driver_->device_get_uuid(&found, device.value()), "cuDeviceGetUuid"));
    return found.bytes;
}

result<std::unique_ptr<memory>> cuda_backend::reserve_at(device_id device, std::size_t max_bytes,
                                                         std::uint64_t preferred) {
    auto on = context_of(device);
    DIOMP_TRY(on);
    if (max_bytes == 0) {
        return error(OMPX_ERR_ARG, "a reservation of device memory cannot be empty");
    }
    auto can = memory_capabilities_of(*driver_, device.value());
    DIOMP_TRY(can);
    return cuda::reserve(on.value(), can.value(), max_bytes, preferred);
}

result<std::unique_ptr<peer_memory>> cuda_backend::open_shared(device_id device,
                                                               const shared_handle &handle) {
    auto on = context_of(device);
    DIOMP_TRY(on);
    return open(on.value(), handle);
}

result<bool> cuda_backend::can_access(device_id device, device_id other) {
    DIOMP_TRY(check_device(*this, device));
    DIOMP_TRY(check_device(*this, other));
    if (device == other) {
        return true;
    }
    int can = 0;
    DIOMP_TRY(check(*driver_, driver_->device_can_access_peer(&can, device.value(), other.value()),
                    "cuDeviceCanAccessPeer"));
    if (can == 0) {
        return false;
    }
    auto reader = context_of(device);
    DIOMP_TRY(reader);
    auto owner = context_of(other);
    DIOMP_TRY(owner);
    DIOMP_TRY(owner.value()->open_to(*reader.value()));
    return true;
}

result<std::unique_ptr<queue>> cuda_backend::make_queue(device_id device) {
    auto on = context_of(device);
    DIOMP_TRY(on);
    return cuda::make_queue(on.value());
}

bool cuda_backend::can_reduce(device_id device, const reduction &how) {
    auto const chosen = kernels::choose(how);
    if (!chosen) {
        return false;
    }
    auto on = context_of(device);
    if (!on) {
        return false;
    }
    auto scope = context::current::enter(*on.value());
    return scope && on.value()->kernel(chosen->name);
}

namespace {
class cuda_scope final : public current_scope {
public:
    cuda_scope(std::shared_ptr<context> on, context::current scope)
        : on_(std::move(on)), scope_(std::move(scope)) {}

private:
    std::shared_ptr<context> on_; ///< destroyed after the scope
    context::current scope_;
};
} // namespace

result<std::unique_ptr<current_scope>> cuda_backend::make_current(device_id device) {
    auto on = context_of(device);
    DIOMP_TRY(on);
    auto scope = context::current::enter(*on.value());
    DIOMP_TRY(scope);
    return std::unique_ptr<current_scope>(std::make_unique<cuda_scope>(on.take(), scope.take()));
}

result<pinned_memory> cuda_backend::allocate_pinned(std::size_t nbytes) {
    auto on = any_context();
    DIOMP_TRY(on);
    auto scope = context::current::enter(*on.value());
    DIOMP_TRY(scope);
    void *base = nullptr;
    code const outcome =
        driver_->mem_host_alloc(&base, nbytes == 0 ? 1 : nbytes, host_alloc_portable);
    if (outcome != success) {
        return cuda_error(*driver_, "cuMemHostAlloc of " + format_size(nbytes), outcome);
    }
    return pinned_memory(base, nbytes, [on = on.take()](void *address) {
        auto const inner = context::current::enter(*on);
        report(on->driver(), on->driver().mem_free_host(address), "cuMemFreeHost");
    });
}

result<pinned_memory> cuda_backend::pin(void *base, std::size_t nbytes) {
    auto on = any_context();
    DIOMP_TRY(on);
    auto scope = context::current::enter(*on.value());
    DIOMP_TRY(scope);
    DIOMP_TRY(check(*driver_, driver_->mem_host_register(base, nbytes, host_register_portable),
                    "cuMemHostRegister"));
    return pinned_memory(base, nbytes, [on = on.take()](void *address) {
        auto const inner = context::current::enter(*on);
        report(on->driver(), on->driver().mem_host_unregister(address), "cuMemHostUnregister");
    });
}

std::optional<device_id> cuda_backend::owner_of(const void *address) {
    auto const wanted = reinterpret_cast<cuda::address>(address);
    unsigned type = 0;
    int number = -1;
    // CUDA returns an error for an address that it does not know; it is host memory then.
    if (driver_->pointer_get_attribute(&type, pointer_memory_type, wanted) != success ||
        type != memory_type_device ||
        driver_->pointer_get_attribute(&number, pointer_device_ordinal, wanted) != success ||
        number < 0 || number >= num_devices()) {
        return {};
    }
    return device_id(number);
}

} // namespace diomp::device::cuda

namespace diomp::device {

namespace {

struct visible_cuda {
    std::shared_ptr<const cuda::library> driver;
    int count = 0; ///< at least 1
};

result<visible_cuda> find_cuda(const library_path_option &option) {
    auto driver = cuda::load_library(option.path);
    DIOMP_TRY(driver);
    int count = 0;
    DIOMP_TRY(
        cuda::check(*driver.value(), driver.value()->device_get_count(&count), "cuDeviceGetCount"));
    if (count == 0) {
        return error(OMPX_ERR_UNSUPPORTED, "CUDA's driver shows no device",
                     "see nvidia-smi and CUDA_VISIBLE_DEVICES");
    }
    return visible_cuda{driver.take(), count};
}

} // namespace

result<std::unique_ptr<backend>> create_cuda(const library_path_option &option) {
    auto found = find_cuda(option);
    DIOMP_TRY(found);
    return std::unique_ptr<backend>(
        std::make_unique<cuda::cuda_backend>(found.value().driver, found.value().count));
}

result<std::vector<int>> numa_nodes_of_cuda(const library_path_option &option) {
    auto found = find_cuda(option);
    DIOMP_TRY(found);
    cuda::library const &driver = *found.value().driver;
    std::vector<int> nodes;
    for (int device = 0; device < found.value().count; ++device) {
        char text[64] = {};
        DIOMP_TRY(cuda::check(driver, driver.device_get_pci_bus_id(text, sizeof(text) - 1, device),
                              "cuDeviceGetPCIBusId"));
        nodes.push_back(numa_node_of(text));
    }
    return nodes;
}

} // namespace diomp::device
