#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace kvscope::checkpoint {

/// While it lives, what this thread does with the tokenizer of a model folder is bounded: replacements that make a text
/// longer and longer, and patterns that never come to an end, end in a message. 5 s of the processor's time, more only
/// for a text above a megabyte; sixteen times the text, and 16 MB in any case. One may live inside another's life: the
/// inner one's length counts then, and the time of both.
class TokenizerWork {
 public:
    /// @param file       the tokenizer's, for messages
    /// @param text_bytes the length of what is tokenized or decoded
    /// @param longest    what it may become in any case
    TokenizerWork(const std::filesystem::path& file, size_t text_bytes, size_t longest = size_t{16} << 20);
    ~TokenizerWork();
    TokenizerWork(const TokenizerWork&) = delete;
    TokenizerWork& operator=(const TokenizerWork&) = delete;

    /// Called for every small piece of work; costs some nanoseconds.
    /// @throws CheckpointError beyond the time; what StopCheck throws
    static void step();

    /// Called with the length of what a text has become.
    /// @throws CheckpointError beyond the limit
    static void require_length(size_t bytes);

    /// The work cannot be done. @throws CheckpointError with the tokenizer's file where it is known, std::runtime_error
    /// else
    [[noreturn]] static void fail(const std::string& why);

 private:
    const std::filesystem::path& file_;
    size_t text_bytes_;
    size_t longest_;
    double looked_at_;        // on a coarse clock of seconds that costs nothing to read
    double started_at_ = -1;  // on the thread's processor clock; from the first look on
    TokenizerWork* outer_;
};

}  // namespace kvscope::checkpoint
