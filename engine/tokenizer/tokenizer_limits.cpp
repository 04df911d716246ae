#include "engine/tokenizer/tokenizer_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "common/stopped.h"
#include "engine/files/checkpoint_error.h"

namespace kvscope::checkpoint {
namespace {

constexpr double seconds_between_looks = 0.05;
constexpr double seconds_for_a_text = 5;
constexpr double seconds_for_a_megabyte = 5;
constexpr size_t megabyte = size_t{1} << 20;
constexpr size_t longest_of_its_text = 16;

double seconds_on(clockid_t clock) {
    timespec now{};
    clock_gettime(clock, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

TokenizerLimits::TokenizerLimits(const std::filesystem::path& file, size_t text_bytes, std::stop_token stop,
                                 size_t longest)
    : file_(file),
      text_bytes_(text_bytes),
      longest_(longest),
      stop_(std::move(stop)),
      looked_at_(seconds_on(CLOCK_MONOTONIC_COARSE)) {}

void TokenizerLimits::step() {
    const double now = seconds_on(CLOCK_MONOTONIC_COARSE);
    if (now - looked_at_ < seconds_between_looks) return;
    looked_at_ = now;
    throw_if_stopped(stop_);
    // The CPU time excludes the time of other programs.
    const double used = seconds_on(CLOCK_THREAD_CPUTIME_ID);
    if (started_at_ < 0) started_at_ = used;
    const double megabytes = static_cast<double>(text_bytes_) / static_cast<double>(megabyte);
    const double most = std::max(seconds_for_a_text, seconds_for_a_megabyte * megabytes);
    if (used - started_at_ > most)
        fail(
            fmt::format("the tokenizer was stopped: it takes longer than {:.0f} s for a text of {} bytes; expected "
                        "less than a second per megabyte",
                        most, text_bytes_));
}

void TokenizerLimits::require_length(size_t bytes) const {
    const size_t most = std::max(longest_, longest_of_its_text * text_bytes_);
    if (bytes > most)
        fail(fmt::format("the tokenizer was stopped: it turns a text of {} bytes into more than {} bytes", text_bytes_,
                         most));
}

void TokenizerLimits::fail(const std::string& why) const { throw CheckpointError(file_, why); }

}  // namespace kvscope::checkpoint
