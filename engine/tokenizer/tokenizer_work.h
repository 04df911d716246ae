#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace kvscope::checkpoint {

/// While this object exists, limits this thread's work with a model's tokenizer, which may not terminate or may grow a
/// text without bound: to 5 s of processor time (more for texts above a megabyte), and to 16 times the text or
/// `longest`. In nested objects, the inner one's length limit applies, and their times add up.
class TokenizerWork {
 public:
    /// @param text_bytes length of the text to tokenize or decode
    /// @param longest    length in bytes that is always allowed
    TokenizerWork(const std::filesystem::path& file, size_t text_bytes, size_t longest = size_t{16} << 20);
    ~TokenizerWork();
    TokenizerWork(const TokenizerWork&) = delete;
    TokenizerWork& operator=(const TokenizerWork&) = delete;

    /// Called for each small piece of work. @throws CheckpointError beyond the time limit; exceptions of StopCheck
    static void step();

    /// Called with the current length of a text. @throws CheckpointError beyond the limit
    static void require_length(size_t bytes);

    /// @throws CheckpointError with the tokenizer's file if known, else std::runtime_error
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
