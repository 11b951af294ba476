// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The output of ranks on other hosts: acknowledges it as fast as the reader of diomp-run's output
// takes it.
#pragma once

#include "agent_protocol.h"
#include "core/output_hub.h"
#include "host_table.h"

namespace diomp::run {

class head_output {
public:
    head_output(output_hub &output, host_table &hosts) : output_(output), hosts_(hosts) {}

    void on_output(host &from, frame_reader &frame);
    /// The reader of diomp-run's output has become slower or faster, or has closed it.
    void on_flow_change();

private:
    [[nodiscard]] bool congested() const { return output_.congested(0) || output_.congested(1); }
    static void send_ack(host &which);

    output_hub &output_;
    host_table &hosts_;
};

} // namespace diomp::run
