#include "tests/fuzz/reader.h"

#include <unistd.h>

#include <fstream>
#include <regex>
#include <stdexcept>

#include "analysis/tables/terminal_text.h"

namespace kvscope::fuzz {
namespace {

namespace fs = std::filesystem;

struct Folder {
    fs::path path = fs::temp_directory_path() / ("kvscope-hostile-" + std::to_string(::getpid()));
    Folder() { fs::create_directories(path); }
    ~Folder() {
        std::error_code error;
        fs::remove_all(path, error);
    }
};

/// The length of the character that `text` begins with, 0 if it is none.
size_t character(std::string_view text) {
    const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
    const size_t length = byte(0) < 0x80 ? 1 : byte(0) >= 0xF0 ? 4 : byte(0) >= 0xE0 ? 3 : byte(0) >= 0xC2 ? 2 : 0;
    for (size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xC0) != 0x80) return 0;
    }
    return length;
}

void require_message(std::string_view text) {
    constexpr size_t longest = 100'000;
    if (text.size() > longest) throw std::logic_error("an endless message: " + std::string(text.substr(0, 200)));
    static const std::regex of_library(R"(\[json\.exception\.[a-z_]+\.[0-9]{3}\])");
    if (std::regex_search(std::string(text), of_library))
        throw std::logic_error("the JSON library's own words: " + std::string(text));
    for (size_t at = 0; at < text.size();) {
        const size_t length = character(text.substr(at));
        const auto first = static_cast<unsigned char>(text[at]);
        if (length == 0 || (first < 0x20 && first != '\n' && first != '\t') || first == 0x7F)
            throw std::logic_error("a message that cannot be shown: " + std::string(text));
        at += length;
    }
}

}  // namespace

namespace {

/// What a refusal says; empty where there is none.
std::string refusal_of(const std::function<void()>& action) {
    std::string message;
    try {
        action();
        return {};
    } catch (const std::runtime_error& error) {
        message = error.what();
    } catch (const std::invalid_argument& error) {
        message = error.what();
    }
    if (message.empty()) throw std::logic_error("a refusal without a word");
    return message;
}

}  // namespace

void may_refuse(const std::function<void()>& action) {
    if (const std::string message = refusal_of(action); !message.empty()) require_message(message);
}

void may_refuse_argument(const std::function<void()>& action) {
    if (const std::string message = refusal_of(action); !message.empty())
        require_message(analysis::terminal_text(message, analysis::Lines::several));
}

const fs::path& scratch() {
    static const Folder folder;
    return folder.path;
}

fs::path scratch_file(const std::string& name, std::string_view bytes) {
    fs::path path = scratch() / name;
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file << bytes;
    file.close();
    if (!file) throw std::logic_error(path.string() + " cannot be written");
    return path;
}

}  // namespace kvscope::fuzz
