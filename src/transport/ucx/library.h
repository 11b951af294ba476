// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The functions of UCX in use, loaded when a job needs them. Programs then start without UCX's
// signal handlers and memory hooks, and run where UCX is not installed.
#pragma once

#include "base/result.h"

#include <ucp/api/ucp.h>
#include <ucs/debug/log_def.h>

#define DIOMP_UCX_FUNCTIONS(each)                                                                  \
    each(ucp_get_version);                                                                         \
    each(ucp_context_query);                                                                       \
    each(ucp_init_version);                                                                        \
    each(ucp_cleanup);                                                                             \
    each(ucp_config_read);                                                                         \
    each(ucp_config_modify);                                                                       \
    each(ucp_config_release);                                                                      \
    each(ucp_worker_create);                                                                       \
    each(ucp_worker_destroy);                                                                      \
    each(ucp_worker_get_address);                                                                  \
    each(ucp_worker_release_address);                                                              \
    each(ucp_worker_get_efd);                                                                      \
    each(ucp_worker_arm);                                                                          \
    each(ucp_worker_progress);                                                                     \
    each(ucp_worker_set_am_recv_handler);                                                          \
    each(ucp_ep_create);                                                                           \
    each(ucp_ep_close_nbx);                                                                        \
    each(ucp_ep_print_info);                                                                       \
    each(ucp_ep_flush_nbx);                                                                        \
    each(ucp_am_send_nbx);                                                                         \
    each(ucp_am_recv_data_nbx);                                                                    \
    each(ucp_put_nbx);                                                                             \
    each(ucp_get_nbx);                                                                             \
    each(ucp_atomic_op_nbx);                                                                       \
    each(ucp_mem_map);                                                                             \
    each(ucp_mem_unmap);                                                                           \
    each(ucp_rkey_pack);                                                                           \
    each(ucp_rkey_buffer_release);                                                                 \
    each(ucp_ep_rkey_unpack);                                                                      \
    each(ucp_rkey_destroy);                                                                        \
    each(ucp_request_check_status);                                                                \
    each(ucp_request_free);                                                                        \
    each(ucs_log_push_handler);                                                                    \
    each(ucs_status_string)

namespace diomp::transport::ucx {

struct library {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a declared name cannot stand in parentheses
#define DIOMP_UCX_MEMBER(name) decltype(&::name) name = nullptr
    DIOMP_UCX_FUNCTIONS(DIOMP_UCX_MEMBER);
#undef DIOMP_UCX_MEMBER
};

/// Loads UCX once per process; it is never unloaded. UCX's own messages then go to DiOMP's log.
result<const library *> load_library();

/// An error with the text "<what>: <UCX's description of the code>".
error ucx_error(const library &ucx, const std::string &what, ucs_status_t code,
                std::string remedy = {});

} // namespace diomp::transport::ucx
