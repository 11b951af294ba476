// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sessions of GPUs whose memory the network reaches, over UCX, and a client's words for them. The
// GPUs are scripted and their memory is one that processors load, so DIOMP_NETWORK_DEVICE_MEMORY=on
// is what reaches it.
#pragma once

#include "offload/remote/client_side.h"
#include "offload/remote/scripted_plugin.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <vector>

namespace diomp_test {

constexpr std::size_t large = std::size_t{3} << 20; // more than the slot has
using bytes = std::vector<unsigned char>;

inline session_setting gpus(int count = 1) {
    session_setting setting;
    setting.conduit = "ucx";
    setting.kind = "cuda";
    setting.device_memory = "on";
    setting.sessions = count;
    return setting;
}

inline void run(const session_setting &setting, const std::function<void(client_side &)> &body) {
    diomp_take_plugins(&scripted::table);
    // An image of another version of LLVM loads another libomptarget, which passes its table, too.
    static diomp_plugin_table unused{};
    unused.version = DIOMP_PLUGIN_TABLE_VERSION;
    diomp_take_plugins(&unused);
    static_cast<void>(used()); // before processes are forked
    used().copies = 0;
    used().frees = 0;
    used().launches = 0;
    used().touched = false;
    used().may_pass = false;
    run_sessions(setting, body);
}

/// Different everywhere.
inline bytes pattern(std::size_t nbytes, unsigned seed) {
    bytes made(nbytes);
    for (std::size_t i = 0; i < nbytes; ++i) {
        made[i] = static_cast<unsigned char>(i * 2654435761U >> 11 ^ seed * 101 ^ i);
    }
    return made;
}

inline std::uint64_t ask_for(client_side &side, frame what, std::uint64_t value, int rank = 1) {
    packet_writer question(what);
    question.number(value);
    std::string const answer = side.answer_to(question.take(), rank);
    packet_reader reader(answer);
    EXPECT_EQ(reader.type<frame>(), frame::done);
    return reader.number<std::uint64_t>();
}

inline void append(packet_writer &batch, operation way, std::uint64_t address, const void *here,
                   std::size_t nbytes) {
    append_operation(batch, way);
    remote::append(
        batch, remote::zero_copy_transfer{address, reinterpret_cast<std::uint64_t>(here), nbytes});
}

inline void bring(client_side &side, std::uint64_t address, const bytes &from, int rank = 1) {
    packet_writer batch;
    append(batch, operation::fetch, address, from.data(), from.size());
    auto const got = side.ask(std::move(batch), rank);
    EXPECT_FALSE(got.failed) << got.rest;
}

inline bytes take(client_side &side, std::uint64_t address, std::size_t nbytes, int rank = 1) {
    bytes taken(nbytes, 0x5a);
    packet_writer batch;
    append(batch, operation::deliver, address, taken.data(), nbytes);
    auto const got = side.ask(std::move(batch), rank);
    EXPECT_FALSE(got.failed) << got.rest;
    return taken;
}

/// Loads tests/offload/remote/image_variables.c. A place per symbol.
inline std::vector<remote::location>
load(client_side &side, const std::vector<remote::symbol> &symbols, int rank = 1) {
    std::ifstream file(std::getenv("DIOMP_TEST_IMAGE"), std::ios::binary);
    std::string const image{std::istreambuf_iterator<char>(file), {}};
    EXPECT_GT(image.size(), 1000U);
    std::string answer =
        side.answer_to(encode(remote::load_frame{remote::identify(image), symbols}), rank);
    if (answer == packet_writer(frame::wanted).take()) {
        packet_writer packet(frame::image);
        packet.bytes(image);
        answer = side.answer_to(packet.take(), rank);
    }
    packet_reader reader(answer);
    EXPECT_EQ(reader.type<frame>(), frame::loaded);
    auto locations = remote::decode_loaded(reader, symbols.size());
    EXPECT_TRUE(locations.ok());
    return locations.take();
}

/// Appends the launch of a kernel of the scripted plugin, on a range.
inline void append_kernel(packet_writer &batch, std::uint64_t kernel, std::uint64_t address,
                          std::uint64_t nbytes) {
    std::uint64_t const arguments[] = {address, nbytes};
    remote::launch_arguments launch;
    launch.kernel = kernel;
    launch.arguments = {reinterpret_cast<const char *>(arguments), sizeof arguments};
    append(batch, launch);
}

} // namespace diomp_test
