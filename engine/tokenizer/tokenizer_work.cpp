#include "engine/tokenizer/tokenizer_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <stdexcept>
#include <utility>

#include "engine/files/checkpoint_error.h"
#include "engine/files/stop_check.h"

namespace kvscope::checkpoint {
namespace {

constexpr double seconds_between_looks = 0.05;
constexpr double seconds_for_a_text = 5;
constexpr double seconds_for_a_megabyte = 5;
constexpr size_t megabyte = size_t{1} << 20;
constexpr size_t longest_of_its_text = 16;

thread_local TokenizerWork* innermost_work = nullptr;

double seconds_on(clockid_t clock) {
    timespec now{};
    clock_gettime(clock, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

TokenizerWork::TokenizerWork(const std::filesystem::path& file, size_t text_bytes, size_t longest)
    : file_(file),
      text_bytes_(text_bytes),
      longest_(std::max(longest, longest_of_its_text * text_bytes)),
      looked_at_(seconds_on(CLOCK_MONOTONIC_COARSE)),
      outer_(std::exchange(innermost_work, this)) {
    if (outer_ == nullptr) return;
    looked_at_ = outer_->looked_at_;
    started_at_ = outer_->started_at_;
}

TokenizerWork::~TokenizerWork() {
    innermost_work = outer_;
    if (outer_ == nullptr) return;
    outer_->looked_at_ = looked_at_;
    outer_->started_at_ = started_at_;
}

void TokenizerWork::step() {
    if (innermost_work == nullptr) return;
    TokenizerWork& work = *innermost_work;
    const double now = seconds_on(CLOCK_MONOTONIC_COARSE);
    if (now - work.looked_at_ < seconds_between_looks) return;
    work.looked_at_ = now;
    StopCheck::now();
    // The CPU time excludes the time of other programs.
    const double used = seconds_on(CLOCK_THREAD_CPUTIME_ID);
    if (work.started_at_ < 0) work.started_at_ = used;
    const double megabytes = static_cast<double>(work.text_bytes_) / static_cast<double>(megabyte);
    const double most = std::max(seconds_for_a_text, seconds_for_a_megabyte * megabytes);
    if (used - work.started_at_ > most) {
        throw CheckpointError(work.file_, fmt::format("the tokenizer was stopped: it takes longer than {:.0f} s for a "
                                                      "text of {} bytes; expected less than a second per megabyte",
                                                      most, work.text_bytes_));
    }
}

void TokenizerWork::fail(const std::string& why) {
    if (innermost_work == nullptr) throw std::runtime_error(why);
    throw CheckpointError(innermost_work->file_, why);
}

void TokenizerWork::require_length(size_t bytes) {
    if (innermost_work == nullptr) return;
    const TokenizerWork& work = *innermost_work;
    if (bytes > work.longest_) {
        throw CheckpointError(
            work.file_, fmt::format("the tokenizer was stopped: it turns a text of {1} bytes into more than {0} bytes",
                                    work.longest_, work.text_bytes_));
    }
}

}  // namespace kvscope::checkpoint
