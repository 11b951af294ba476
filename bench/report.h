// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Results: one row per measurement, with the same columns in the text table, in JSON and in CSV.
#pragma once

#include "measure.h"

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

namespace diomp::bench {

/// The commit of the sources. Defined in a file of its own (bench/commit.cmake), so that a new
/// commit recompiles only that file.
extern const char *const commit;

struct row {
    std::string benchmark; ///< the subcommand
    std::string operation; ///< the timed operation; the same name for every library
    std::string buffers;   ///< "private": aligned_alloc; "global": the library's own memory; "-"
    int threads = 1;
    std::size_t size_bytes = 0; ///< the size passed to the call; 0 if none
    timing time;
    int ranks = 0; ///< 0: those of the run
};

/// Columns with the same value in all rows of a run.
struct context {
    std::string library;
    std::string conduit;
    int ranks = 1;
};

struct machine {
    std::string cpu = "unknown";
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
};

inline machine this_machine() {
    machine result;
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        if (line.rfind("model name", 0) == 0 && line.find(": ") != std::string::npos) {
            result.cpu = line.substr(line.find(": ") + 2);
            break;
        }
    }
    return result;
}

/// Returns 10^6 bytes per second of the size passed to the call. For a collective, the transferred
/// data differs and depends on the algorithm.
inline double megabytes_per_s(const row &entry) {
    return entry.time.median_us > 0 ? static_cast<double>(entry.size_bytes) / entry.time.median_us
                                    : 0;
}

/// One column: its name, its value as JSON and CSV write it, and whether it is text.
struct cell {
    const char *name;
    std::string value;
    bool text;
};

inline std::string number(double value) {
    std::ostringstream out;
    out << std::setprecision(6) << value;
    return out.str();
}

inline std::vector<cell> cells(const row &entry, const context &run, const machine &machine_info) {
    const double rate = entry.time.median_us > 0 ? 1e6 / entry.time.median_us : 0;
    return {{"benchmark", entry.benchmark, true},
            {"library", run.library, true},
            {"operation", entry.operation, true},
            {"buffers", entry.buffers, true},
            {"ranks", std::to_string(entry.ranks > 0 ? entry.ranks : run.ranks), false},
            {"threads", std::to_string(entry.threads), false},
            {"size_bytes", std::to_string(entry.size_bytes), false},
            {"median_us", number(entry.time.median_us), false},
            {"p10_us", number(entry.time.p10_us), false},
            {"p90_us", number(entry.time.p90_us), false},
            {"samples", std::to_string(entry.time.samples), false},
            {"iterations", std::to_string(entry.time.iterations), false},
            {"mb_per_s", number(megabytes_per_s(entry)), false},
            {"per_s", number(rate), false},
            {"conduit", run.conduit, true},
            {"cpu", machine_info.cpu, true},
            {"cores", std::to_string(machine_info.cores), false},
            {"commit", commit, true}};
}

/// Quotes a string for JSON or CSV. Sufficient for this program's own text and CPU names.
inline std::string quoted(const std::string &text, char escape) {
    std::string result = "\"";
    for (const char c : text) {
        if (c == '"' || (c == '\\' && escape == '\\')) {
            result += escape;
        }
        result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
    return result + '"';
}

inline void write_json(std::ostream &out, const std::vector<row> &rows, const context &run) {
    const machine machine_info = this_machine();
    out << "{\"schema\": \"diomp-bench/1\", \"rows\": [";
    const char *row_separator = "\n";
    for (const row &entry : rows) {
        out << std::exchange(row_separator, ",\n") << "{";
        const char *separator = "";
        for (const cell &column : cells(entry, run, machine_info)) {
            out << std::exchange(separator, ", ") << '"' << column.name
                << "\": " << (column.text ? quoted(column.value, '\\') : column.value);
        }
        out << "}";
    }
    out << "\n]}\n";
}

inline void write_csv(std::ostream &out, const std::vector<row> &rows, const context &run) {
    const machine machine_info = this_machine();
    const char *separator = "";
    for (const cell &column : cells(row{}, run, machine_info)) {
        out << std::exchange(separator, ",") << column.name;
    }
    out << '\n';
    for (const row &entry : rows) {
        separator = "";
        for (const cell &column : cells(entry, run, machine_info)) {
            out << std::exchange(separator, ",")
                << (column.text ? quoted(column.value, '"') : column.value);
        }
        out << '\n';
    }
}

/// Collects rows; rank 0 prints each row at once and writes the files at the end.
class report {
public:
    report(context run, bool prints) : run_(std::move(run)), prints_(prints) {}

    void add(row line) {
        if (prints_) {
            if (rows_.empty()) {
                print_header();
            }
            std::printf("%-10s %-20s %-8s %6d %7d %10zu %12.4f %12.4f %12.4f %11.1f\n",
                        run_.library.c_str(), line.operation.c_str(), line.buffers.c_str(),
                        line.ranks > 0 ? line.ranks : run_.ranks, line.threads, line.size_bytes,
                        line.time.median_us, line.time.p10_us, line.time.p90_us,
                        megabytes_per_s(line));
            if (std::fflush(stdout) != 0 && table_failure_ == 0) {
                table_failure_ = errno;
            }
        }
        rows_.push_back(std::move(line));
    }

    [[nodiscard]] const std::vector<row> &rows() const { return rows_; }

    /// Writes the files. Returns false, with a message, if a file or the table could not be
    /// written.
    [[nodiscard]] bool write_files(const std::string &json, const std::string &csv) const {
        if (!prints_) {
            return true;
        }
        bool const has_table = is_table_written();
        bool const has_json = write_file(json, write_json);
        return write_file(csv, write_csv) && has_json && has_table;
    }

private:
    using writer = void (*)(std::ostream &, const std::vector<row> &, const context &);

    void print_header() const {
        std::printf("# %s, %ld cores, commit %s, conduit %s\n", this_machine().cpu.c_str(),
                    this_machine().cores, commit, run_.conduit.c_str());
        std::printf("%-10s %-20s %-8s %6s %7s %10s %12s %12s %12s %11s\n", "library", "operation",
                    "buffers", "ranks", "threads", "bytes", "median us", "p10 us", "p90 us",
                    "MB/s");
    }

    [[nodiscard]] bool is_table_written() const {
        if (table_failure_ != 0) {
            std::fprintf(stderr, "benchmark: cannot write to standard output: %s\n",
                         std::strerror(table_failure_));
        }
        return table_failure_ == 0;
    }

    bool write_file(const std::string &path, writer write) const {
        if (path.empty()) {
            return true;
        }
        errno = 0;
        std::ofstream file(path);
        write(file, rows_, run_);
        file.close();
        if (!file) {
            std::fprintf(stderr, "benchmark: cannot write '%s': %s\n", path.c_str(),
                         std::strerror(errno));
        }
        return static_cast<bool>(file);
    }

    context run_;
    bool prints_;
    int table_failure_ = 0; ///< errno
    std::vector<row> rows_;
};

} // namespace diomp::bench
