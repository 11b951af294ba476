// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/remote/queue_recorder.h"

namespace diomp::offload::remote {

void queue_recorder::moved(direction which, carrier by, std::size_t nbytes, time_point begin) {
    if (observer_ != nullptr) {
        observer_->moved(device_, which, by, nbytes, begin, now());
    }
}

void queue_recorder::started(direction which, carrier by, std::size_t nbytes) {
    if (observer_ != nullptr) {
        in_flight_.push_back({which, by, nbytes, now()});
    }
}

template <typename IsComplete>
void queue_recorder::finish_if(IsComplete is_complete) {
    if (in_flight_.empty()) {
        return;
    }
    auto const end = now();
    std::erase_if(in_flight_, [&](const transfer &each) {
        bool const is_over = is_complete(each);
        if (is_over) {
            observer_->moved(device_, each.which, each.by, each.nbytes, each.begin, end);
        }
        return is_over;
    });
}

void queue_recorder::finished_puts() {
    finish_if([](const transfer &each) {
        return each.which == direction::to_device && each.by == carrier::network;
    });
}

void queue_recorder::finished_all() {
    finish_if([](const transfer & /*each*/) { return true; });
}

void queue_recorder::sent(std::size_t nbytes) {
    if (observer_ != nullptr) {
        observer_->sent(device_, nbytes);
        transmitted_at_ = now();
    }
}

void queue_recorder::replied(std::size_t nbytes, std::uint64_t kernel) {
    if (observer_ != nullptr) {
        observer_->replied(device_, nbytes, kernel, transmitted_at_, now());
    }
}

void queue_recorder::waited(time_point begin) {
    if (observer_ != nullptr) {
        observer_->waited(device_, begin, now());
    }
}

} // namespace diomp::offload::remote
