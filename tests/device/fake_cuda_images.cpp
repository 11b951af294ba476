// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Images of programs on the stand-in: libraries for the processor whose headers say that they are
// NVIDIA's (tests/offload/image_for_stand_in.py). They are loaded once for each device, so that
// each has its own variables, which lie in the process's memory and not in the device's.
#include "device/fake_cuda.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string>
#include <utility>

namespace fake_cuda {

namespace {

/// The file's bytes: sections end it, or their table does.
std::size_t size_of(const Elf64_Ehdr &header) {
    auto const *const begin = reinterpret_cast<const char *>(&header);
    std::size_t end = header.e_shoff + std::size_t{header.e_shnum} * header.e_shentsize;
    for (unsigned i = 0; i < header.e_shnum; ++i) {
        Elf64_Shdr section;
        std::memcpy(&section, begin + header.e_shoff + std::size_t{i} * header.e_shentsize,
                    sizeof(section));
        if (section.sh_type != SHT_NOBITS) {
            end = std::max<std::size_t>(end, section.sh_offset + section.sh_size);
        }
    }
    return end;
}

void *load(const Elf64_Ehdr &header) {
    // With a name of its own, for which the loader has no other library.
    std::string name = "/dev/shm/fake-cuda-image-XXXXXX";
    int const fd = ::mkostemp(name.data(), O_CLOEXEC);
    std::size_t const size = size_of(header);
    Elf64_Ehdr own = header;
    own.e_machine = EM_X86_64;
    own.e_flags = 0;
    own.e_ident[EI_ABIVERSION] = 0;
    if (::write(fd, &header, size) != static_cast<ssize_t>(size) ||
        ::pwrite(fd, &own, sizeof(own), 0) != sizeof(own)) {
        std::abort();
    }
    void *const library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    ::unlink(name.c_str());
    ::close(fd);
    return library;
}

/// For tests of programs.
void show_launches_at_the_end() {
    static bool const is_shown = [] {
        bool const wanted = std::getenv("FAKE_CUDA_SHOW_LAUNCHES") != nullptr;
        if (wanted) {
            std::atexit([] {
                std::printf("launches: %d graphs, %d regions\n", all().graph_launches,
                            all().image_launches);
                std::fflush(stdout);
            });
        }
        return wanted;
    }();
    static_cast<void>(is_shown);
}

template <std::size_t>
using word = std::uint64_t;

template <std::size_t... Indices>
void call(void (*entry)(), const std::uint64_t *words, std::index_sequence<Indices...>) {
    using takes_words = void (*)(word<Indices>...);
    reinterpret_cast<takes_words>(entry)(words[Indices]...);
}

} // namespace

void (*find_entry(const module &in, const char *name))() {
    return reinterpret_cast<void (*)()>(::dlsym(in.library, name));
}

// Arguments that a function does not have are ignored.
void carry_out(const image_call &what) {
    constexpr std::size_t max_words = 64;
    std::array<std::uint64_t, max_words> words{};
    if (what.words.size() > max_words) {
        std::abort();
    }
    std::copy(what.words.begin(), what.words.end(), words.begin());
    call(what.entry, words.data(), std::make_index_sequence<max_words>());
}

} // namespace fake_cuda

using namespace fake_cuda;

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED int cuModuleLoadDataEx(void **into, const void *image, unsigned num_options,
                                const void * /*options*/, void ** /*values*/) {
    FAKE_CUDA_ENTER_CONTEXT
    show_launches_at_the_end();
    auto const &header = *static_cast<const Elf64_Ehdr *>(image);
    if (std::memcmp(&header, ELFMAG, SELFMAG) != 0 || num_options != 0) {
        return complain(__func__, "no ELF file, or options", invalid_value);
    }
    // The image's constructors may call the driver.
    guard.unlock();
    void *const library = load(header);
    guard.lock();
    if (library == nullptr) {
        return complain(__func__, ::dlerror(), invalid_value);
    }
    auto made = std::make_unique<fake_cuda::module>();
    made->device = current;
    made->library = library;
    *into = made.get();
    all().modules[made.get()] = std::move(made);
    return ok;
}

EXPORTED int cuModuleGetGlobal_v2(device_address *where, std::size_t *size, void *of,
                                  const char *name) {
    FAKE_CUDA_ENTER_CONTEXT
    auto *const in = static_cast<fake_cuda::module *>(of);
    if (!all().modules.contains(in) || in->device != current || in->library == nullptr) {
        return complain(__func__, "no module of this context", invalid_handle);
    }
    void *const found = ::dlsym(in->library, name);
    Dl_info ignored{};
    Elf64_Sym *symbol = nullptr;
    if (found == nullptr ||
        ::dladdr1(found, &ignored, reinterpret_cast<void **>(&symbol), RTLD_DL_SYMENT) == 0 ||
        symbol == nullptr) {
        return not_found;
    }
    *where = reinterpret_cast<device_address>(found);
    *size = symbol->st_size;
    return ok;
}

EXPORTED int cuFuncGetAttribute(int *value, int which, void * /*function*/) {
    FAKE_CUDA_ENTER_CONTEXT
    constexpr int max_threads_per_block = 0;
    *value = 1024;
    return which == max_threads_per_block ? ok : complain(__func__, "attribute", invalid_value);
}
