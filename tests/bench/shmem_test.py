#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""bench/compare-shmem with programs that print known figures in the forms of OSU's: times, rates, one number.

Arguments: the script, the build directory.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = r"""
#include <shmem.h>
#include <stdio.h>
#ifdef OSHMEM_MAJOR_VERSION
#define TIMES 4
#else
#define TIMES 1
#endif
int main(void) {
    shmem_init();
    shmem_barrier_all();
    if (shmem_my_pe() == 0) {
        printf("# A header\n%s\n");
        fflush(stdout);
    }
    shmem_finalize();
    return 0;
}
"""
ROWS = {
    "put": (r'# Size      Latency (us)\n1 %.2f\n1024 %.2f', "0.25 * TIMES, 0.5 * TIMES"),
    "put_mr": (r'8 %.2f', "4e6 / TIMES"),
    "atomics": (r'shmem_int_fadd %.2f %.4f', "1.0 / TIMES, 0.125 * TIMES"),
    "barrier": (r'   %.4f', "1.5 * TIMES"),
}
EXPECTED = {("put", "heap", "1"): 0.25, ("put", "global", "1024"): 0.5, ("put_mr", "heap", "8"): 0.25,
            ("atomics", "global", "shmem_int_fadd"): 0.125, ("barrier", "-", "-"): 1.5}


def write_sources(folder):
    for name in ("openshmem", "util"):
        (folder / "c" / name).mkdir(parents=True)
    for name in ("osu_util.c", "osu_util_pgas.c"):
        (folder / "c" / "util" / name).write_text("")
    for name, (form, values) in ROWS.items():
        text = PROGRAM.replace('%s\\n");', form + '\\n", ' + values + ');')
        (folder / "c" / "openshmem" / f"osu_oshm_{name}.c").write_text(text)


def main():
    script, build = sys.argv[1:]
    with tempfile.TemporaryDirectory() as scratch:
        folder, output = Path(scratch), Path(scratch) / "rows.json"
        write_sources(folder)
        command = [script, str(folder), "--build", build, "--rounds", "2", "--only", ",".join(ROWS), "--patience", "0",
                   "--json", str(output)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        print(done.stdout + done.stderr)
        assert done.returncode == 0, done.returncode
        rows = {(row["program"], row["memory"], row["what"]): row for row in json.loads(output.read_text())["rows"]}
        assert len(rows) == 2 * 2 + 2 + 2 + 1, sorted(rows)
        for key, value in EXPECTED.items():
            row = rows[key]
            assert abs(row["median"]["diomp"] - value) < 1e-6, row
            assert abs(row["ratio_median"] - 0.25) < 1e-6 and abs(row["ratio_minimum"] - 0.25) < 1e-6, row
            assert len(row["rounds"]["oshmem"]) == 2, row
        assert "below 1: 9 of 9 rows in medians, 9 in minima" in done.stdout
        missing = subprocess.run([script, scratch + "/c/util", "--build", build], capture_output=True, text=True, check=False)
        assert missing.returncode != 0 and "no folder openshmem" in missing.stderr, missing.stderr


main()
