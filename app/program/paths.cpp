#include "app/program/paths.h"

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <stdexcept>

namespace kvscope::program {
namespace {

namespace fs = std::filesystem;

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
    const fs::path built = KVSCOPE_DEFAULT_MODEL;
    if (fs::exists(built, error)) return built;
    throw std::runtime_error("no default model here (looked for " + built.string() +
                             "): name one with -m, or set KVSCOPE_DEFAULT_MODEL to a GGUF file or a model directory");
}

fs::path asset(const std::string& name) {
    std::error_code error;
    for (const fs::path& folder : {share_folder(), fs::path(KVSCOPE_SOURCE_ASSETS)}) {
        if (fs::exists(folder / name, error)) return folder / name;
    }
    throw std::runtime_error("the program's own file " + name + " is missing: looked in " + share_folder().string() +
                             " and " + KVSCOPE_SOURCE_ASSETS + "; install again");
}

std::string read_text(const fs::path& path) {
    if (path == "-") return {std::istreambuf_iterator<char>(std::cin), {}};
    std::error_code error;
    if (fs::is_directory(path, error)) throw std::runtime_error(path.string() + " is a folder, expected a text file");
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error(path.string() + " cannot be read: is it there, and yours to read?");
    return {std::istreambuf_iterator<char>(file), {}};
}

std::string name_of_text(const fs::path& path) { return path == "-" ? "standard input" : path.string(); }

}  // namespace kvscope::program
