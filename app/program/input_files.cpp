#include "app/program/input_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "common/bounded_json.h"

namespace kvscope::program {
namespace {

namespace fs = std::filesystem;

/// Reads to the end of the file. A pipe ends when all writers have closed the pipe.
std::string read_all(int descriptor, const std::string& name, size_t largest) {
    std::string text;
    std::vector<char> block(1 << 16);
    for (;;) {
        const ssize_t got = ::read(descriptor, block.data(), block.size());
        if (got == 0) return text;
        if (got > 0) {
            text.append(block.data(), static_cast<size_t>(got));
        } else if (errno == EAGAIN) {
            pollfd waited{descriptor, POLLIN, 0};
            ::poll(&waited, 1, -1);
        } else if (errno != EINTR) {
            throw std::runtime_error(name + " cannot be read: " + std::strerror(errno));
        }
        if (text.size() > largest)
            throw std::runtime_error(name + " contains more than " + std::to_string(largest >> 20) +
                                     " MB, which is too large: use a smaller file");
    }
}

fs::path share_folder() {
    std::error_code error;
    const fs::path program = fs::read_symlink("/proc/self/exe", error);
    return error ? fs::path() : program.parent_path().parent_path() / "share" / "kvscope";
}

}  // namespace

fs::path default_model() {
    if (const char* named = std::getenv("KVSCOPE_DEFAULT_MODEL"); named && *named) return named;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(share_folder() / "models", error)) {
        if (entry.path().extension() == ".gguf") return entry.path();
    }
    fs::path built = KVSCOPE_DEFAULT_MODEL;
    if (fs::exists(built, error)) return built;
    throw std::runtime_error("no default model found (searched " + built.string() +
                             "): name one with -m, or set KVSCOPE_DEFAULT_MODEL to a GGUF file or a model directory");
}

fs::path asset_path(const std::string& name) {
    std::error_code error;
    for (const fs::path& folder : {share_folder(), fs::path(KVSCOPE_SOURCE_ASSETS)}) {
        if (fs::exists(folder / name, error)) return folder / name;
    }
    throw std::runtime_error("kvscope's file " + name + " is missing: searched " + share_folder().string() + " and " +
                             KVSCOPE_SOURCE_ASSETS + ". Install kvscope again");
}

std::string with_asset_path(const std::string& text) {
    constexpr std::string_view folder = "assets/";
    return text.starts_with(folder) ? asset_path(text.substr(folder.size())).string() : text;
}

std::string read_text(const fs::path& path, size_t largest) {
    if (path == "-") return read_all(STDIN_FILENO, "standard input", largest);
    std::error_code error;
    if (fs::is_directory(path, error)) throw std::runtime_error(path.string() + " is a folder: give a text file");
    // Without O_NONBLOCK, opening a pipe without a writer would block forever.
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0)
        throw std::runtime_error(path.string() +
                                 (errno == ENOENT ? " does not exist" : " cannot be read: check that you may read it"));
    std::string text;
    try {
        text = read_all(descriptor, path.string(), largest);
    } catch (...) {
        ::close(descriptor);
        throw;
    }
    ::close(descriptor);
    if (text.empty() && fs::is_fifo(path, error))
        throw std::runtime_error(path.string() + " is a pipe that no program writes to: give a text file");
    return text;
}

std::string read_prompt(const fs::path& path) {
    std::string text = read_text(path);
    if (path.extension() != ".jsonl" && path.extension() != ".ndjson") return text;
    const auto first = bounded_json::parse_or_discard(std::string_view(text).substr(0, text.find('\n')));
    if (!first.is_object()) return text;
    throw std::runtime_error(fmt::format(
        "{} contains one JSON record per line, not the text of one prompt. `kvscope run -f {} …` runs each record as a "
        "prompt",
        path.string(), path.string()));
}

std::string display_name_of_input(const fs::path& path) { return path == "-" ? "standard input" : path.string(); }

}  // namespace kvscope::program
