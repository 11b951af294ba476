// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Interface of a session's device: images, memory, kernels.
#pragma once

#include "base/result.h"
#include "offload/remote/protocol.h"
#include "transport/types.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

struct diomp_offload_table;

namespace diomp::offload::service {

inline void *to_pointer(std::uint64_t address) { return reinterpret_cast<void *>(address); }

/// The session's slot: memory of this process that puts and gets reach.
struct slot {
    std::uint64_t begin = 0;
    std::size_t nbytes = 0;

    [[nodiscard]] bool has(std::uint64_t address, std::size_t size) const {
        return address - begin <= nbytes && size <= nbytes - (address - begin);
    }
};

inline constexpr const char *no_network_memory = "the network cannot access memory of this device";

/// Device memory for a network transfer. It is not freed while `lifetime` exists.
struct network_range {
    transport::memory_kind kind = transport::memory_kind::host;
    std::shared_ptr<void> lifetime;
};

/// Allocator of a device's memory outside the slot. Any thread; blocks until the device is done.
class target_allocator {
public:
    virtual ~target_allocator() = default;
    /// Errors: OMPX_ERR_NOMEM.
    virtual result<std::uint64_t> allocate(std::size_t nbytes) = 0;
    virtual status release(std::uint64_t address) = 0;
    /// From now on the range is an allocation that release() forgets: the runtime owns it.
    virtual void add(std::uint64_t address, std::size_t nbytes) = 0;
};

struct target_abilities {
    /// Kind of the memory outside the slot; nullopt if networks cannot access it.
    std::optional<transport::memory_kind> own_memory;
    /// nullptr: the client allocates the device's memory, in the slot.
    target_allocator *allocator = nullptr;
};

/// Any thread, except for functions marked otherwise. Every call blocks until the device is done.
class target {
public:
    virtual ~target() = default;

    /// Loads the image in a file; once per file. Returns a location per symbol. Errors:
    /// OMPX_ERR_UNSUPPORTED.
    virtual result<std::vector<remote::location>>
    load(const std::string &file, const remote::image_id &id,
         const std::vector<remote::symbol> &symbols) = 0;
    /// The name of a kernel whose address load() has returned; nullptr otherwise.
    [[nodiscard]] virtual const std::string *kernel_name(std::uint64_t kernel) const = 0;

    // Ranges may be in the slot or on the device. OMPX_ERR_RANGE: a range is known to be invalid.
    virtual status write(std::uint64_t to, const void *from, std::size_t nbytes) = 0;
    virtual status read(void *to, std::uint64_t from, std::size_t nbytes) = 0;
    virtual status copy(std::uint64_t to, std::uint64_t from, std::size_t nbytes) = 0;
    /// Whether this process can load from a range by its address.
    [[nodiscard]] virtual bool is_loadable(std::uint64_t address, std::size_t nbytes) const = 0;

    [[nodiscard]] const target_abilities &abilities() const { return abilities_; }
    /// Validates a range for the network and keeps it allocated as long as the result. The range is
    /// in the slot, in an allocation of the allocator, in a variable that load() has returned, or
    /// in other memory that processors can load from. Errors: OMPX_ERR_RANGE, OMPX_ERR_UNSUPPORTED.
    [[nodiscard]] virtual result<network_range> retain(std::uint64_t address,
                                                       std::size_t nbytes) const = 0;
    /// Makes the device current in the calling thread, which some vendors' libraries require in
    /// threads in which the network accesses its memory.
    virtual void enter() {}

    /// The runtime of calls in regions. Call before the first launch.
    virtual void use_runtime(const diomp_offload_table & /*runtime*/) {}
    virtual status launch(const remote::launch_arguments &launch) = 0;
    /// Call at the end: runs the destructors of the images.
    virtual void unload() = 0;

    /// Call once the world is complete, before any other function.
    void set_slot(slot memory) { slot_ = memory; }

protected:
    explicit target(const target_abilities &abilities) : abilities_(abilities) {}

    target_abilities const abilities_;
    slot slot_;
};

/// A CPU device: images are shared libraries, memory is the slot.
std::unique_ptr<target> make_cpu_target();
/// A device of one of LLVM's plugins: "host", "cuda", "amdgpu". `network_device_memory`:
/// DIOMP_NETWORK_DEVICE_MEMORY; with "on", host devices emulate GPUs whose memory processors can
/// load from.
result<std::unique_ptr<target>> make_plugin_target(const std::string &plugin, int device,
                                                   const std::string &network_device_memory);

/// Devices that LLVM's plugin finds on this host.
struct plugin_devices {
    std::uint32_t machine = 0;
    struct gpu {
        std::string architecture;       ///< "": images do not depend on it
        std::uint64_t memory_bytes = 0; ///< 0: unknown
    };
    std::vector<gpu> devices;
};
/// Runs the plugin in a child process, since GPUs must not be started before a fork.
result<plugin_devices> query_plugin(const std::string &plugin);

/// Loads DiOMP's libomptarget of the oldest version beside the service, which images depend on and
/// which contains LLVM's plugins. False: none is installed. Any thread.
bool load_libomptarget();

/// Loads the libomptarget that an image of another version of LLVM is linked with: the system's
/// loader knows its name from then on, and need not find a file. Its functions remain those of the
/// oldest version. Returns the name if the image needs one that is not installed beside the
/// service; otherwise an empty string. Any thread.
std::string load_libomptarget_of(const std::string &image_file);

} // namespace diomp::offload::service
