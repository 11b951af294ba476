// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/log.h"
#include "base/read_file.h"
#include "base/unique_fd.h"
#include "launch/openmp_files.h"
#include "offload/plugin_table.h"
#include "offload/service/allocations.h"
#include "offload/service/image.h"
#include "offload/service/target.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <dlfcn.h>
#include <fcntl.h>
#include <iterator>
#include <map>
#include <mutex>
#include <sstream>
#include <unordered_map>

namespace {

const diomp_plugin_table *plugins = nullptr;

} // namespace

/// Called by libomptarget when it is loaded. An image of another version of LLVM loads a second
/// one, whose plugins drive no device here: the first remains.
extern "C" __attribute__((visibility("default"))) void
diomp_take_plugins(const diomp_plugin_table *table) {
    if (plugins == nullptr && table->version >= DIOMP_PLUGIN_TABLE_VERSION) {
        plugins = table;
    }
}

namespace diomp::offload::service {
namespace {

class plugin_target final : public target, public target_allocator {
public:
    plugin_target(int device, std::optional<transport::memory_kind> memory)
        : target({memory, this}), device_(device), allocated_([device](std::uint64_t address) {
              if (plugins->release(device, address) != 0) {
                  log(log_level::error, "the device did not free memory at {:#x}", address);
              }
          }) {}

    result<std::vector<remote::location>> load(const std::string &file, const remote::image_id &id,
                                               const std::vector<remote::symbol> &symbols) override;
    [[nodiscard]] const std::string *kernel_name(std::uint64_t kernel) const override {
        std::lock_guard const guard(mutex_);
        auto const found = kernels_.find(kernel);
        return found == kernels_.end() ? nullptr : &found->second;
    }
    result<std::uint64_t> allocate(std::size_t nbytes) override {
        std::uint64_t const address = plugins->allocate(device_, nbytes);
        if (address == 0) {
            return error(OMPX_ERR_NOMEM, "the device is out of memory");
        }
        allocated_.add(address, nbytes);
        return address;
    }
    status release(std::uint64_t address) override {
        if (!allocated_.release(address)) {
            return error(OMPX_ERR_RANGE,
                         fmt::format("no allocation of the device begins at {:#x}", address));
        }
        return {};
    }

    void add(std::uint64_t address, std::size_t nbytes) override {
        allocated_.add(address, nbytes); // libomptarget asks the runtime before it frees memory
    }

    status write(std::uint64_t to, const void *from, std::size_t nbytes) override {
        if (slot_.has(to, nbytes)) {
            std::memcpy(to_pointer(to), from, nbytes);
            return {};
        }
        auto retained = retain_memory(to, nbytes);
        DIOMP_TRY(retained);
        return outcome(plugins->write(device_, to, from, nbytes), "write data");
    }
    status read(void *to, std::uint64_t from, std::size_t nbytes) override {
        if (slot_.has(from, nbytes)) {
            std::memcpy(to, to_pointer(from), nbytes);
            return {};
        }
        auto retained = retain_memory(from, nbytes);
        DIOMP_TRY(retained);
        return outcome(plugins->read(device_, to, from, nbytes), "read data");
    }
    status copy(std::uint64_t to, std::uint64_t from, std::size_t nbytes) override {
        if (slot_.has(from, nbytes)) {
            return write(to, to_pointer(from), nbytes);
        }
        if (slot_.has(to, nbytes)) {
            return read(to_pointer(to), from, nbytes);
        }
        auto source = retain_memory(from, nbytes);
        DIOMP_TRY(source);
        auto target = retain_memory(to, nbytes);
        DIOMP_TRY(target);
        return outcome(plugins->copy(device_, to, from, nbytes), "copy data");
    }
    [[nodiscard]] bool is_loadable(std::uint64_t address, std::size_t nbytes) const override {
        return slot_.has(address, nbytes);
    }

    [[nodiscard]] result<network_range> retain(std::uint64_t address,
                                               std::size_t nbytes) const override {
        if (slot_.has(address, nbytes)) {
            return network_range{};
        }
        if (!abilities_.own_memory) {
            return error(OMPX_ERR_UNSUPPORTED, no_network_memory);
        }
        auto retained = retain_in(variables_, address, nbytes);
        DIOMP_TRY(retained);
        return network_range{*abilities_.own_memory, retained.take()};
    }
    void enter() override { static_cast<void>(plugins->enter(device_)); }

    void use_runtime(const diomp_offload_table &runtime) override {
        plugins->use_runtime(&runtime);
    }
    status launch(const remote::launch_arguments &launch) override;
    void unload() override {}

private:
    static status outcome(int code, const char *doing) {
        if (code == 0) {
            return {};
        }
        return error(OMPX_ERR_SYSTEM, fmt::format("the device did not {}", doing));
    }

    /// Keeps an allocation of the client, or an entry of `others`, alive as long as the result.
    [[nodiscard]] result<std::shared_ptr<void>>
    retain_in(const allocations &others, std::uint64_t address, std::size_t nbytes) const {
        auto retained = allocated_.retain(address, nbytes);
        if (!retained) {
            retained = others.retain(address, nbytes);
        }
        if (!retained) {
            return error(OMPX_ERR_RANGE,
                         fmt::format("{} bytes at {:#x} are not memory of the device: neither "
                                     "allocated nor in a variable of an image",
                                     nbytes, address));
        }
        return retained;
    }
    /// retain_in() for operations of the plugin, which does not validate addresses.
    [[nodiscard]] result<std::shared_ptr<void>> retain_memory(std::uint64_t address,
                                                              std::size_t nbytes) const {
        return retain_in(symbols_, address, nbytes);
    }
    static void add_if_new(allocations &table, std::uint64_t address, std::size_t nbytes) {
        if (!table.retain(address, nbytes)) { // symbols may share an address
            table.add(address, nbytes);
        }
    }

    struct image {
        std::string bytes; ///< the plugin may read them at any time
        void *handle = nullptr;
        std::map<std::string, std::uint64_t> variables; ///< result of variables_in()
        std::vector<remote::symbol> symbols;            ///< LLVM's kernels keep their names
    };

    int device_;
    allocations allocated_;
    // Symbols and variables exist until the process ends.
    allocations symbols_{[](std::uint64_t) {}};   ///< of images, without kernels
    allocations variables_{[](std::uint64_t) {}}; ///< subset of symbols_
    mutable std::mutex mutex_;                    ///< protects the rest
    std::deque<image> images_; ///< LLVM's plugin reads them while they are loaded
    std::unordered_map<std::uint64_t, std::string> kernels_;
};

result<std::vector<remote::location>>
plugin_target::load(const std::string &file, const remote::image_id & /*id*/,
                    const std::vector<remote::symbol> &symbols) {
    std::lock_guard const guard(mutex_);
    auto bytes = read_file(file);
    DIOMP_TRY(bytes);
    image &loaded = images_.emplace_back();
    loaded.bytes = bytes.take();
    loaded.handle = plugins->load(device_, loaded.bytes.data(), loaded.bytes.size());
    if (loaded.handle == nullptr) {
        images_.pop_back();
        return error(OMPX_ERR_UNSUPPORTED, "the device rejected the image");
    }
    loaded.variables = variables_in(loaded.bytes);
    loaded.symbols = symbols;
    std::vector<remote::location> locations;
    locations.reserve(symbols.size());
    for (remote::symbol const &each : loaded.symbols) {
        auto const address = plugins->symbol(loaded.handle, each.name.c_str(), each.nbytes);
        auto const found = loaded.variables.find(each.name);
        bool const is_data = address != 0 && each.nbytes > 0;
        bool const is_variable =
            is_data && found != loaded.variables.end() && each.nbytes == found->second;
        if (is_data) {
            add_if_new(symbols_, address, each.nbytes);
        }
        if (is_variable) {
            add_if_new(variables_, address, each.nbytes);
        }
        locations.push_back({address, is_variable});
        kernels_.emplace(address, each.name);
    }
    return locations;
}

status plugin_target::launch(const remote::launch_arguments &launch) {
    diomp_remote_launch args{};
    args.kernel = launch.kernel;
    args.version = launch.version;
    std::memcpy(args.num_teams, launch.num_teams, sizeof args.num_teams);
    std::memcpy(args.thread_limit, launch.thread_limit, sizeof args.thread_limit);
    args.trip_count = launch.trip_count;
    args.dynamic_memory_bytes = launch.dynamic_memory_bytes;
    std::vector<std::uint64_t> values(launch.arguments.size() / sizeof(std::uint64_t));
    std::memcpy(values.data(), launch.arguments.data(), values.size() * sizeof(std::uint64_t));
    args.arguments = values.data();
    args.num_arguments = values.size();
    return outcome(plugins->launch(device_, &args), "run the kernel");
}

} // namespace

/// A program that provides its own plugin table (tests) needs no libomptarget.
static bool find_plugins() {
    return plugins != nullptr || (load_libomptarget() && plugins != nullptr);
}

static std::optional<transport::memory_kind> kind_of(const std::string &plugin,
                                                     const std::string &network_device_memory) {
    if (plugin == "amdgpu") {
        return transport::memory_kind::hip;
    }
    if (plugin == "cuda" || network_device_memory == "on") {
        return transport::memory_kind::cuda;
    }
    return {};
}

result<std::unique_ptr<target>> make_plugin_target(const std::string &plugin, int device,
                                                   const std::string &network_device_memory) {
    if (!find_plugins()) {
        return error(OMPX_ERR_UNSUPPORTED,
                     "DiOMP's libomptarget was not found next to the service");
    }
    if (plugins->start(plugin.c_str()) <= device || plugins->use(device) != 0) {
        return error(OMPX_ERR_UNSUPPORTED,
                     fmt::format("LLVM's plugin '{}' could not start device {}", plugin, device));
    }
    return std::unique_ptr<target>(
        std::make_unique<plugin_target>(device, kind_of(plugin, network_device_memory)));
}

/// Starts the plugin and its devices, and writes to `into`: the ELF machine, and a line per device
/// with the size of its memory and its architecture. 0: success.
static int write_devices(const std::string &plugin, int into) {
    std::string text;
    int const count = find_plugins() ? plugins->start(plugin.c_str()) : 0;
    bool const is_gpu = kind_of(plugin, "").has_value();
    for (int device = 0; device < count && plugins->use(device) == 0; ++device) {
        text += fmt::format("{} {}\n", is_gpu ? plugins->memory_bytes(device) : 0,
                            is_gpu ? plugins->architecture(device) : "");
    }
    if (text.empty()) {
        return 1;
    }
    text = fmt::format("{}\n{}", plugins->machine(), text);
    return ::write(into, text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1;
}

result<plugin_devices> query_plugin(const std::string &plugin) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) {
        return system_error("pipe", errno);
    }
    unique_fd const read_end(ends[0]);
    unique_fd write_end(ends[1]);
    pid_t const pid = ::fork();
    if (pid == 0) {
        std::_Exit(write_devices(plugin, ends[1]));
    }
    write_end.reset();
    std::string text;
    std::array<char, 4096> chunk;
    for (ssize_t nbytes = 1; pid > 0 && nbytes > 0;) {
        nbytes = ::read(read_end.get(), chunk.data(), chunk.size());
        text.append(chunk.data(), static_cast<std::size_t>(std::max<ssize_t>(nbytes, 0)));
    }
    if (pid > 0) {
        launch::reap_child(pid);
    }
    plugin_devices found;
    std::istringstream lines(text);
    lines >> found.machine;
    lines.ignore();
    for (std::string line; std::getline(lines, line);) {
        plugin_devices::gpu &each = found.devices.emplace_back();
        std::istringstream words(line);
        words >> each.memory_bytes >> each.architecture;
    }
    if (found.devices.empty()) {
        return error(OMPX_ERR_UNSUPPORTED,
                     fmt::format("LLVM's plugin '{}' finds no devices here", plugin),
                     "check that the vendor's driver is installed");
    }
    return found;
}

} // namespace diomp::offload::service
