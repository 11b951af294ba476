// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/remote/world_terms.h"

#include <algorithm>

namespace diomp::offload::remote {
namespace {

/// Devices with a smaller index are of one kind on both sides, and can make calls.
int count_speaking(const world_terms &one, const world_terms &other) {
    int const num_common = std::min(one.num_devices, other.num_devices);
    int count = 0;
    for (auto i = std::size_t{0}; count < num_common && one.can_call[i] && other.can_call[i] &&
                                  one.is_gpu[i] == other.is_gpu[i];
         ++i) {
        ++count;
    }
    return count;
}

} // namespace

void world_terms::add(const device_description &device) {
    have_adapters = have_adapters && device.has_rdma_adapter;
    is_on_one_host = is_on_one_host && device.identity.node == node;
    ++num_devices;
    is_gpu.push_back(!device.has_memory_in_slot());
    can_call.push_back(device.has_memory_in_slot() || device.is_gpu());
    memory_bytes = std::max<std::size_t>(memory_bytes, device.memory_bytes);
    least_bytes = std::min<std::size_t>(least_bytes, device.memory_bytes);
    if (!device.has_memory_in_slot()) {
        least_gpu_bytes = std::min<std::size_t>(least_gpu_bytes, device.own_memory_bytes);
    }
}

std::string encode(const world_terms &terms) {
    packet_writer packet;
    packet.text(terms.network);
    packet.number(static_cast<std::uint32_t>(terms.node_size));
    packet.text(terms.node);
    for (bool const each : {terms.encrypts_data, terms.have_adapters, terms.is_on_one_host}) {
        packet.number(static_cast<std::uint8_t>(each ? 1 : 0));
    }
    packet.number(static_cast<std::uint32_t>(terms.num_devices));
    for (auto const *const flags : {&terms.is_gpu, &terms.can_call}) {
        for (bool const each : *flags) {
            packet.number(static_cast<std::uint8_t>(each ? 1 : 0));
        }
    }
    packet.number(std::uint64_t{terms.memory_bytes});
    packet.number(std::uint64_t{terms.least_bytes});
    packet.number(std::uint64_t{terms.least_gpu_bytes});
    return packet.take();
}

result<world_terms> decode_terms(std::string_view bytes) {
    packet_reader packet(bytes);
    world_terms terms;
    terms.network = packet.text();
    terms.node_size = static_cast<int>(packet.number<std::uint32_t>());
    terms.node = packet.text();
    for (bool *each : {&terms.encrypts_data, &terms.have_adapters, &terms.is_on_one_host}) {
        *each = packet.number<std::uint8_t>() != 0;
    }
    terms.num_devices = static_cast<int>(packet.number<std::uint32_t>());
    for (auto *const flags : {&terms.is_gpu, &terms.can_call}) {
        for (int i = 0; i < terms.num_devices && packet.ok(); ++i) {
            flags->push_back(packet.number<std::uint8_t>() != 0);
        }
    }
    terms.memory_bytes = packet.number<std::uint64_t>();
    terms.least_bytes = packet.number<std::uint64_t>();
    terms.least_gpu_bytes = packet.number<std::uint64_t>();
    if (!packet.ok() || !packet.at_end()) {
        return error(OMPX_ERR_ARG, "malformed description of another rank's remote devices",
                     "all ranks must run the same version of DiOMP");
    }
    return terms;
}

result<agreed_terms> agree(const world_terms &own, int rank, const client_exchange &exchange) {
    auto others = exchange(encode(own)); // in the order of their ranks
    DIOMP_TRY(others);
    agreed_terms agreed{own, {}, {}, count_speaking(own, own)};
    for (std::size_t i = 0; i < others.value().size(); ++i) {
        auto decoded = decode_terms(others.value()[i]);
        DIOMP_TRY(decoded);
        world_terms const &theirs = decoded.value();
        world_terms &all = agreed.all;
        if (i == 0 && rank != 0) {
            all.network = theirs.network;
            all.node_size = theirs.node_size;
        }
        all.encrypts_data = all.encrypts_data || theirs.encrypts_data;
        all.have_adapters = all.have_adapters && theirs.have_adapters;
        all.is_on_one_host = all.is_on_one_host && theirs.is_on_one_host && theirs.node == own.node;
        all.num_devices += theirs.num_devices;
        agreed.num_speaking = std::min(agreed.num_speaking, count_speaking(own, theirs));
        all.memory_bytes = std::max(all.memory_bytes, theirs.memory_bytes);
        all.least_bytes = std::min(all.least_bytes, theirs.least_bytes);
        all.least_gpu_bytes = std::min(all.least_gpu_bytes, theirs.least_gpu_bytes);
        agreed.num_devices.push_back(theirs.num_devices);
        agreed.is_gpu.push_back(theirs.is_gpu);
    }
    agreed.is_gpu.insert(agreed.is_gpu.begin() + rank, own.is_gpu);
    agreed.num_devices.insert(agreed.num_devices.begin() + rank, own.num_devices);
    return agreed;
}

} // namespace diomp::offload::remote
