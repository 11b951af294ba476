// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "program_regions.h"

#include "base/elf_view.h"
#include "base/llvm_versions.h"
#include "base/unique_fd.h"
#include "rank_environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fcntl.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>

namespace diomp::run {
namespace {

constexpr std::string_view libomptarget_prefix = "libomptarget.so.";

/// What this installation runs; everything if it has no libomptarget, which is reported elsewhere.
std::vector<llvm_version> own_versions() {
    auto installed = installed_llvm_versions(libomptarget_folder());
    if (installed.empty()) {
        installed.assign(llvm_versions.begin(), llvm_versions.end());
    }
    return installed;
}

/// Joins a text about each version: `form` has {0} for the number, {1} for the soname.
std::string list_versions(const char *form, const char *separator = ", ") {
    std::vector<std::string> texts;
    for (llvm_version const &each : own_versions()) {
        texts.push_back(fmt::format(fmt::runtime(form), each.major, each.libomptarget));
    }
    return fmt::format("{}", fmt::join(texts, separator));
}

std::string remedy() {
    return fmt::format("compile it with diompcc, or with {} -fopenmp "
                       "-fopenmp-targets=x86_64-pc-linux-gnu (-fopenmp-targets= names the "
                       "architecture of the devices)",
                       list_versions("clang-{0}", " or "));
}

/// A file that is mapped for reading.
class mapped_file {
public:
    explicit mapped_file(const std::string &path) {
        unique_fd const fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
        struct stat about{};
        if (!fd.valid() || ::fstat(fd.get(), &about) != 0 || !S_ISREG(about.st_mode) ||
            about.st_size <= 0) {
            return;
        }
        auto const nbytes = static_cast<std::size_t>(about.st_size);
        void *const memory = ::mmap(nullptr, nbytes, PROT_READ, MAP_PRIVATE, fd.get(), 0);
        if (memory != MAP_FAILED) {
            bytes_ = {static_cast<const char *>(memory), nbytes};
        }
    }
    ~mapped_file() {
        if (!bytes_.empty()) {
            ::munmap(const_cast<char *>(bytes_.data()), bytes_.size());
        }
    }
    mapped_file(const mapped_file &) = delete;
    mapped_file &operator=(const mapped_file &) = delete;
    [[nodiscard]] std::string_view bytes() const { return bytes_; }

private:
    std::string_view bytes_;
};

/// Returns whether it is an OpenMP library: of LLVM, gcc, Intel or NVIDIA.
bool is_openmp(std::string_view library) {
    constexpr std::array<std::string_view, 4> prefixes{"libomp.so", "libgomp.so", "libiomp5.so",
                                                       "libnvomp.so"};
    return std::ranges::any_of(prefixes,
                               [&](std::string_view each) { return library.starts_with(each); });
}

void read_needed(const elf_view &file, program_regions &into) {
    for (std::string &library : file.needed()) {
        if (library.starts_with(libomptarget_prefix)) {
            into.libomptarget = std::move(library);
        } else if (is_openmp(library)) {
            into.openmp = std::move(library);
        }
    }
}

/// Returns whether the file has regions of gcc, which call libgomp even if gcc was built without
/// offloading.
bool calls_gcc_regions(const elf_view &file, const Elf64_Shdr &table) {
    auto const names = file.section(table.sh_link);
    for (std::uint64_t i = 0; auto const each = file.entry<Elf64_Sym>(table, i); ++i) {
        if (names && each->st_shndx == SHN_UNDEF &&
            file.text(*names, each->st_name).starts_with("GOMP_target")) {
            return true;
        }
    }
    return false;
}

/// Returns the compiler in .comment. Prefers clang and flang: gcc is usually there for the C
/// library's start-up code.
std::string compiler_of(std::string_view comment) {
    std::string found;
    while (!comment.empty()) {
        auto const end = std::min(comment.find('\0'), comment.size());
        std::string_view const line = comment.substr(0, end);
        comment.remove_prefix(std::min(end + 1, comment.size()));
        auto const clang = line.find("clang version ");
        auto const flang = line.find("flang version ");
        if (auto const begin = std::min(clang, flang); begin != std::string_view::npos) {
            constexpr std::size_t words = 14; // length of the text before the number
            return std::string(line.substr(begin, line.find(' ', begin + words) - begin));
        }
        if (found.empty() && line.starts_with("GCC: ")) {
            auto const number = line.rfind(' ');
            found = fmt::format("gcc {}", line.substr(number + 1));
        }
    }
    return found;
}

std::string describe_compiler(const program_regions &what) {
    return what.compiler.empty() ? "" : fmt::format(" (compiled by {})", what.compiler);
}

/// Why none of our libomptargets runs the program's regions, after its name; "" if one does.
std::string why_not_run(const program_regions &what) {
    auto const ours = own_versions();
    auto const has_entries = [&](const llvm_version &each) {
        return what.entries.empty() || what.entries == each.entries;
    };
    auto const is_needed = [&](const llvm_version &each) {
        return what.libomptarget.empty() || what.libomptarget == each.libomptarget;
    };
    if (std::ranges::none_of(ours, has_entries)) {
        return fmt::format("has target regions of LLVM {}, which DiOMP's libomptarget of LLVM {} "
                           "does not run",
                           what.entries == "llvm_offload_entries" ? "21 or newer" : "20 or older",
                           list_versions("{0}"));
    }
    if (std::ranges::none_of(ours, is_needed)) {
        return fmt::format("needs {}, and remote devices are in DiOMP's {}", what.libomptarget,
                           list_versions("{1}"));
    }
    if (std::ranges::none_of(
            ours, [&](const auto &each) { return has_entries(each) && is_needed(each); })) {
        return fmt::format("needs {}, which is not that of the LLVM that compiled its target "
                           "regions (section {})",
                           what.libomptarget, what.entries);
    }
    return "";
}

} // namespace

program_regions inspect_regions(std::string_view file) {
    program_regions found;
    elf_view const elf(file);
    auto const header = elf.at<Elf64_Ehdr>(0);
    if (!elf.section(0) || !header) {
        return found;
    }
    found.is_elf = true;
    auto const names = elf.section(header->e_shstrndx);
    bool calls_gcc = false;
    for (std::uint32_t i = 0; auto const each = elf.section(i); ++i) {
        std::string const name = names ? elf.text(*names, each->sh_name) : "";
        if (name == "omp_offloading_entries" || name == "llvm_offload_entries") {
            found.offload_format = program_regions::format::llvm;
            found.entries = name;
        } else if (name == ".comment" && each->sh_offset < file.size()) {
            found.compiler = compiler_of(file.substr(each->sh_offset, each->sh_size));
        } else if (each->sh_type == SHT_DYNSYM) {
            calls_gcc = calls_gcc_regions(elf, *each);
        }
    }
    read_needed(elf, found);
    if (calls_gcc && found.offload_format == program_regions::format::none) {
        found.offload_format = program_regions::format::gnu;
    }
    return found;
}

status check_remote_regions(const std::string &path) {
    mapped_file const file(path);
    program_regions const what = inspect_regions(file.bytes());
    std::string const file_text = path + describe_compiler(what);
    if (what.offload_format == program_regions::format::gnu) {
        return error(OMPX_ERR_ARG,
                     fmt::format("--remote-devices: the target regions of {} are gcc's, which run "
                                 "on the host or on gcc's own devices",
                                 file_text),
                     remedy());
    }
    if (std::string const why = why_not_run(what); !why.empty()) {
        return error(OMPX_ERR_ARG, fmt::format("--remote-devices: {} {}", file_text, why),
                     remedy());
    }
    return {};
}

std::string explain_unused_devices(const std::string &path) {
    char const *const offload = std::getenv("OMP_TARGET_OFFLOAD");
    if (offload != nullptr && ::strcasecmp(offload, "disabled") == 0) {
        return "OMP_TARGET_OFFLOAD is DISABLED";
    }
    mapped_file const file(path);
    program_regions const what = inspect_regions(file.bytes());
    if (!what.is_elf) {
        return "none of its programs has loaded DiOMP's libomptarget";
    }
    if (what.offload_format != program_regions::format::none) {
        return fmt::format("{} has not loaded DiOMP's libomptarget", path);
    }
    std::string const compiled =
        what.openmp.empty() ? "without OpenMP" : fmt::format("for {}", what.openmp);
    return fmt::format("{} has no device code: it is compiled {}{}; {}", path, compiled,
                       describe_compiler(what), remedy());
}

} // namespace diomp::run
