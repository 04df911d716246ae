#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace kvscope::checkpoint {

/// While this object exists, limits tokenizer work on this thread to 5 s of CPU time (more for texts above a megabyte),
/// and the length of texts to 16 times the input or `longest`, whichever is larger.
class TokenizerWork {
 public:
    /// @param longest length in bytes that is always allowed
    TokenizerWork(const std::filesystem::path& file, size_t text_bytes, size_t longest = size_t{16} << 20);
    ~TokenizerWork();
    TokenizerWork(const TokenizerWork&) = delete;
    TokenizerWork& operator=(const TokenizerWork&) = delete;

    /// Call after each piece of work. @throws CheckpointError beyond the time limit; exceptions of StopCheck
    static void step();

    static void require_length(size_t bytes);

    /// @throws CheckpointError if the tokenizer's file is known, else std::runtime_error
    [[noreturn]] static void fail(const std::string& why);

 private:
    const std::filesystem::path& file_;
    size_t text_bytes_;
    size_t longest_;
    double looked_at_;        // time of the last check, on a coarse clock in seconds
    double started_at_ = -1;  // thread's processor time at the first check
    TokenizerWork* outer_;
};

}  // namespace kvscope::checkpoint
