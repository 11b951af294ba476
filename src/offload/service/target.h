// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a session's device is to the rest of it: images, memory, kernels.
#pragma once

#include "base/result.h"
#include "conduit/conduit.h"
#include "offload/remote/protocol.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace diomp::offload::service {

inline void *to_pointer(std::uint64_t address) { return reinterpret_cast<void *>(address); }

/// Memory of this process that the network reaches: the session's slot.
struct slot {
    std::uint64_t begin = 0;
    std::size_t nbytes = 0;

    [[nodiscard]] bool has(std::uint64_t address, std::size_t size) const {
        return address - begin <= nbytes && size <= nbytes - (address - begin);
    }
};

inline constexpr const char *no_network_memory = "the network does not reach memory of this device";

/// Memory of a device as a network works with it. It is not freed while this lives.
struct network_range {
    conduit::memory_kind kind = conduit::memory_kind::host;
    std::shared_ptr<void> held;
};

/// Any thread, except where told. Every call blocks until the device is done.
class target {
public:
    virtual ~target() = default;

    /// Loads the image in a file, once. Errors: OMPX_ERR_UNSUPPORTED. A place per symbol.
    virtual result<std::vector<remote::place>> load(const std::string &file,
                                                    const remote::image_id &id,
                                                    const std::vector<remote::symbol> &symbols) = 0;
    /// The name of a kernel that load() told of; nullptr: it did not.
    [[nodiscard]] virtual const std::string *kernel_name(std::uint64_t kernel) const = 0;
    /// Of memory that is not the slot. OMPX_ERR_NOMEM, OMPX_ERR_UNSUPPORTED.
    virtual result<std::uint64_t> allocate(std::size_t nbytes) = 0;
    virtual status release(std::uint64_t address) = 0;

    // Ranges may be in the slot or on the device. OMPX_ERR_RANGE: as far as that can be told here.
    virtual status write(std::uint64_t to, const void *from, std::size_t nbytes) = 0;
    virtual status read(void *to, std::uint64_t from, std::size_t nbytes) = 0;
    virtual status copy(std::uint64_t to, std::uint64_t from, std::size_t nbytes) = 0;
    /// Whether a range can be read by its address in this process.
    [[nodiscard]] virtual bool is_loadable(std::uint64_t address, std::size_t nbytes) const = 0;

    /// Of memory that is not the slot, if networks can be told of it.
    [[nodiscard]] virtual std::optional<conduit::memory_kind> own_memory() const { return {}; }
    /// A range for the network, which lies in the slot, in what allocate() gave out, in a variable
    /// that load() told of, or elsewhere where processors load. OMPX_ERR_RANGE,
    /// OMPX_ERR_UNSUPPORTED.
    [[nodiscard]] virtual result<network_range> hold(std::uint64_t address,
                                                     std::size_t nbytes) const = 0;
    /// Makes the device the calling thread's own: some vendors' libraries want that where the
    /// network works with its memory.
    virtual void enter() {}

    virtual status launch(const remote::launch_arguments &launch) = 0;
    /// At the end: runs what images want to run then.
    virtual void unload() = 0;

    /// When the world stands, before any of the other calls.
    void set_slot(slot memory) { slot_ = memory; }

protected:
    slot slot_;
};

/// Processors: images are libraries, memory is the slot.
std::unique_ptr<target> make_cpu_target();
/// A device of one of LLVM's plugins: "host", "cuda", "amdgpu". `network_device_memory`:
/// DIOMP_NETWORK_DEVICE_MEMORY; "on" has host devices stand for GPUs whose memory processors load.
result<std::unique_ptr<target>> make_plugin_target(const std::string &plugin, int device,
                                                   const std::string &network_device_memory);

/// What LLVM's plugin finds here: asked in a process of its own, since GPUs must not be started
/// before a fork.
struct plugin_devices {
    std::uint32_t machine = 0;
    std::vector<std::string> architectures; ///< of each device; "": of no importance to images
};
result<plugin_devices> ask_plugin(const std::string &plugin);

/// Loads our libomptarget, which images name among their libraries and which has LLVM's plugins.
/// False: it is not there.
bool load_libomptarget();

} // namespace diomp::offload::service
