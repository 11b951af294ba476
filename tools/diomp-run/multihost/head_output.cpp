// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "head_output.h"

namespace diomp::run {
namespace {

/// Output is acknowledged in portions of this size.
constexpr std::uint32_t ack_bytes = max_unacked_bytes / 4;

} // namespace

void head_output::on_output(host &from, frame_reader &frame) {
    auto const rank = static_cast<int>(frame.number<std::uint32_t>());
    int const which = frame.number<std::uint8_t>() != 0 ? 1 : 0;
    std::string_view const text = frame.rest();
    if (!from.block.contains(rank)) {
        return;
    }
    from.unacked_bytes += static_cast<std::uint32_t>(text.size());
    output_.add_text(rank, which, text);
    if (!congested()) {
        send_ack(from);
    }
}

void head_output::send_ack(host &which) {
    if (which.unacked_bytes >= ack_bytes && which.link) {
        which.link->send(small_frame(frame_type::output_ack, which.unacked_bytes));
        which.unacked_bytes = 0;
    }
}

void head_output::on_flow_change() {
    for (int const which : {0, 1}) {
        if (output_.reader_closed(which)) {
            hosts_.send_to_all(
                small_frame(frame_type::output_closed, static_cast<std::uint8_t>(which)));
        }
    }
    if (!congested()) {
        for (host &each : hosts_) {
            send_ack(each);
        }
    }
}

} // namespace diomp::run
