#include "engine/files/stop_check.h"

#include <utility>

namespace kvscope::checkpoint {
namespace {

thread_local StopCheck* innermost = nullptr;

}  // namespace

StopCheck::StopCheck(std::function<void()> check) : check_(std::move(check)), outer_(std::exchange(innermost, this)) {}

StopCheck::~StopCheck() { innermost = outer_; }

void StopCheck::now() {
    for (const StopCheck* each = innermost; each != nullptr; each = each->outer_) each->check_();
}

}  // namespace kvscope::checkpoint
