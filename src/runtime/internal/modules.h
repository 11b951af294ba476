// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The modules' classes, declared only: a source includes the headers of those that it uses.
#pragma once

namespace diomp {
struct settings;
namespace cart {
class cart_registry;
}
namespace channels {
class channel_registry;
}
namespace coll {
class algorithm_source;
class collectives;
} // namespace coll
namespace device_coll {
class device_collectives;
}
namespace group {
class group_registry;
class segment_workspace;
} // namespace group
namespace memory {
class address_space;
class directory;
class segment;
} // namespace memory
namespace messaging {
class call_service;
class engine;
} // namespace messaging
namespace offload {
class devices;
class preregistered_segments;
} // namespace offload
namespace rma {
class transfers;
}
namespace stacks {
class stack_reporter;
}
namespace sync {
class locks;
}
namespace transport {
class arena;
class conduit;
} // namespace transport
} // namespace diomp
