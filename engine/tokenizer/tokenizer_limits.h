#pragma once

#include <cstddef>
#include <filesystem>
#include <stop_token>
#include <string>

namespace kvscope::checkpoint {

/// Limits the work of a tokenizer on one thread. The limit is 5 s of CPU time, or more for a text above a megabyte.
/// Texts may grow to 16 times the input or to `longest` bytes, whichever is more.
class TokenizerLimits {
 public:
    /// @param file the tokenizer's file, for messages; must outlive this object
    /// @param longest bytes to which every text may grow
    TokenizerLimits(const std::filesystem::path& file, size_t text_bytes, std::stop_token stop,
                    size_t longest = size_t{16} << 20);

    /// Applies the limits to another input. The time used for the earlier input still counts.
    void set_text_bytes(size_t bytes) { text_bytes_ = bytes; }

    /// Call after each piece of work. @throws CheckpointError beyond the time limit; Stopped after a stop request
    void step();

    void require_length(size_t bytes) const;

    /// @throws CheckpointError with the tokenizer's file
    [[noreturn]] void fail(const std::string& why) const;

 private:
    const std::filesystem::path& file_;
    size_t text_bytes_;
    size_t longest_;
    std::stop_token stop_;
    double looked_at_;        // time of the last check, on a coarse clock in seconds
    double started_at_ = -1;  // thread's processor time at the first check
};

}  // namespace kvscope::checkpoint
