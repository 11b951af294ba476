// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "startup.h"

#include "base/run_program.h"

#include <string>
#include <vector>

namespace diomp::bench {
bool measure_startup(int ranks, int samples, report &into) {
    const std::vector<std::string> command{
        program_beside("diomp-run"), "-n", std::to_string(ranks), "--", own_program(), "hello"};
    std::vector<double> samples_us;
    for (int sample = 0; sample <= samples; ++sample) {
        const stopwatch watch;
        const program_result job = run_program(command, errors_to::own_standard_error);
        if (job.exit_status != 0) {
            std::fprintf(stderr, "diomp-bench: the start-up job of %d ranks ended with status %d\n",
                         ranks, job.exit_status);
            return false;
        }
        if (sample > 0) { // the first job reads the programs from disk
            samples_us.push_back(watch.seconds() * 1e6);
        }
    }
    into.add({"startup", "startup", "-", 1, 0, summarise(std::move(samples_us), 1), ranks});
    return true;
}

} // namespace diomp::bench
