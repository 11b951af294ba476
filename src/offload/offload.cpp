// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/offload.h"

#include "offload/alloc_directory.h"
#include "offload/device_allocator.h"
#include "offload/device_endpoints.h"
#include "offload/device_segments.h"
#include "offload/internal/bounce_requester.h"
#include "offload/internal/bounce_server.h"
#include "offload/internal/request_executor.h"
#include "offload/mover.h"
#include "offload/path_selector.h"
#include "offload/plans.h"
#include "offload/preregistered_segments.h"
#include "offload/stream_copies.h"
#include "offload/translator.h"
#include "offload/variables.h"
#include "rma/rma.h"

namespace diomp::offload {

/// Both ends of transfers through host memory.
struct devices::bounce_path {
    bounce_path(const segment_table &table, const exposed_variables &exposed,
                memory::address_space &space, memory::segment &host, messaging::engine &engine,
                messaging::call_service &calls, rma::transfers &transfers, stream_copies &copies,
                world_rank self)
        : server(table, exposed, space, engine, calls, transfers, copies),
          requester(server.request_handler(), host, engine, calls, copies, self) {}

    bounce_server server;
    bounce_requester requester;
};

devices::devices(memory::address_space &space, memory::segment &host, memory::directory &registered,
                 const transport::arena &arena, messaging::engine &engine,
                 messaging::call_service &calls, rma::transfers &transfers,
                 preregistered_segments &preregistered, const launch::job_info &job,
                 const options &chosen)
    : segments_(std::make_unique<device_segments>(openmp_, space, arena, engine, transfers,
                                                  preregistered, job, chosen.segment_bytes)),
      directory_(
          std::make_unique<alloc_directory>(segments_->table(), host, engine, calls, job.rank)),
      paths_(std::make_unique<path_selector>(segments_->table(), preregistered.devices(), engine,
                                             calls, chosen.paths, job.rank)),
      variables_(std::make_unique<offload::variables>(openmp_, *segments_, *directory_, registered,
                                                      host, engine, calls)),
      copies_(std::make_unique<stream_copies>(engine, host, chosen.min_pin_bytes)),
      bounce_(std::make_unique<bounce_path>(segments_->table(), variables_->exposed(), space, host,
                                            engine, calls, transfers, *copies_, job.rank)),
      allocator_(std::make_unique<device_allocator>(*segments_, *directory_, arena, transfers,
                                                    copies_->segment_pins(), job)),
      translator_(std::make_unique<offload::translator>(openmp_, *segments_, *directory_,
                                                        *variables_, space, host, arena, job.rank)),
      mover_(std::make_unique<offload::mover>(openmp_, *segments_, *translator_, *paths_, transfers,
                                              *copies_, bounce_->requester,
                                              allocator_->inflight())),
      endpoints_(std::make_unique<device_endpoints>(
          *segments_, *directory_, *paths_, engine, calls, arena, job,
          std::make_unique<request_executor>(*mover_, transfers, segments_->table(), *directory_,
                                             engine, calls, job.size, chosen.on_request),
          chosen.calls)),
      plans_(std::make_unique<offload::plans>(openmp_, job.rank)) {}

void devices::attach(const openmp &functions, std::atomic<std::uint64_t> &epoch) {
    openmp_.attach(functions);
    segments_->table().attach(epoch);
    directory_->set_own_devices(functions.driven_devices);
    directory_->set_remote_memory(functions.remote);
}

void devices::set_groups(std::function<result<group_members>(ompx_group_t)> find) {
    endpoints_->set_groups(std::move(find));
}

void devices::forget_group(std::uint64_t id) { endpoints_->forget_group(id); }

devices::~devices() {
    variables_->stop(); // its thread may allocate device memory
}

std::int32_t devices::device_index_of(int device) const {
    return directory_->device_index_of(device);
}

} // namespace diomp::offload
