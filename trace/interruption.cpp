#include "trace/interruption.h"

#include <utility>

namespace kvscope::trace {
namespace {

thread_local std::stop_token of_this_thread;

}  // namespace

Interruptible::Interruptible(std::stop_token token) : before_(std::exchange(of_this_thread, std::move(token))) {}

Interruptible::~Interruptible() { of_this_thread = std::move(before_); }

void throw_if_interrupted() {
    if (of_this_thread.stop_requested()) throw Interrupted();
}

}  // namespace kvscope::trace
