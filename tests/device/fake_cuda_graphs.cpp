// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The stand-in's graphs: what a stream captures, as a list.
#include "device/fake_cuda.h"

#include <algorithm>
#include <utility>

namespace fake_cuda {

int refuse_captured(const char *function, stream &of) {
    if (!of.captured) {
        return ok;
    }
    return complain(function, "the stream is being captured", capture_unsupported);
}

} // namespace fake_cuda

using namespace fake_cuda;

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED int cuStreamBeginCapture_v2(void *of, int mode) {
    FAKE_CUDA_ENTER_CONTEXT
    auto *const begun = static_cast<stream *>(of);
    if (!all().streams.contains(begun) || begun->device != current || begun->captured || mode < 0 ||
        mode > 2) {
        return complain(__func__, "stream or mode", invalid_value);
    }
    begun->captured.emplace();
    return ok;
}

EXPORTED int cuStreamEndCapture(void *of, void **into) {
    FAKE_CUDA_ENTER_CONTEXT
    auto *const ended = static_cast<stream *>(of);
    if (!all().streams.contains(ended) || !ended->captured) {
        return complain(__func__, "nothing is captured", invalid_value);
    }
    auto made = std::make_unique<graph>(graph{ended->device, std::move(*ended->captured)});
    ended->captured.reset();
    *into = made.get();
    all().graphs[made.get()] = std::move(made);
    return ok;
}

EXPORTED int cuGraphInstantiateWithFlags(void **into, void *of, unsigned long long flags) {
    FAKE_CUDA_ENTER_CONTEXT
    auto const found = all().graphs.find(static_cast<graph *>(of));
    if (found == all().graphs.end() || flags != 0) {
        return complain(__func__, "graph or flags", invalid_value);
    }
    auto made = std::make_unique<graph>(*found->second);
    *into = made.get();
    all().executables[made.get()] = std::move(made);
    return ok;
}

EXPORTED int cuGraphDestroy(void *of) {
    FAKE_CUDA_ENTER
    return all().graphs.erase(static_cast<graph *>(of)) == 1
               ? ok
               : complain(__func__, "no such graph", invalid_value);
}

EXPORTED int cuGraphExecDestroy(void *of) {
    FAKE_CUDA_ENTER
    for (stream const *const each : all().streams) {
        if (std::ranges::any_of(each->pending,
                                [of](const pending_item &item) { return item.executable == of; })) {
            complain(__func__, "the graph is executed", 0);
        }
    }
    return all().executables.erase(static_cast<graph *>(of)) == 1
               ? ok
               : complain(__func__, "no such graph", invalid_value);
}

EXPORTED int cuGraphLaunch(void *of, void *on) {
    FAKE_CUDA_ENTER_CONTEXT
    auto const found = all().executables.find(static_cast<graph *>(of));
    auto *const into = static_cast<stream *>(on);
    if (found == all().executables.end() || !all().streams.contains(into) ||
        into->device != current || found->second->device != current) {
        return complain(__func__, "graph or stream", invalid_value);
    }
    ++all().graph_launches;
    for (pending_item each : found->second->items) {
        each.executable = of;
        into->add(std::move(each));
    }
    return ok;
}
