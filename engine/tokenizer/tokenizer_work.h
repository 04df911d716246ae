#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace kvscope::checkpoint {

/// While this object exists, limits the tokenizer's work on this thread. The limit is 5 s of CPU time, or more for a
/// text above a megabyte. Texts may grow to 16 times the input or to `longest` bytes, whichever is more.
class TokenizerWork {
 public:
    /// @param longest bytes to which every text may grow
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
