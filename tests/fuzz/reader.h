#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope::fuzz {

/// One of the program's readers with bytes from outside. Each file in tests/fuzz/readers/ defines one, by a function
/// called after the file: `Reader gguf_reader()` in gguf.cpp. The build makes a fuzzer of each, and lists them for the
/// test that gives each the stored inputs of tests/data/hostile/.
struct Reader {
    std::string name;
    /// Reads the bytes as the program does. A refusal is no find: see `read`. Everything else that is thrown is one.
    std::function<void(std::string_view bytes)> read;
};

/// All readers of this build, by file name.
[[nodiscard]] const std::vector<Reader>& readers();

/// Calls `action`, which may refuse its input as the program's errors do: std::runtime_error and std::invalid_argument
/// with a message for people. Others pass, among them those of the JSON library.
/// @throws std::logic_error where the message is none that can be shown: not UTF-8, control characters, or endless
void may_refuse(const std::function<void()>& action);
/// The same for what quotes an argument, which the command line shows through analysis::terminal_text.
void may_refuse_argument(const std::function<void()>& action);

/// A folder of this process's own; files in it are written anew for each input.
[[nodiscard]] const std::filesystem::path& scratch();
/// Writes a file there and returns its path.
std::filesystem::path scratch_file(const std::string& name, std::string_view bytes);

}  // namespace kvscope::fuzz
