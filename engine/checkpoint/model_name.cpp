#include "engine/checkpoint/model_name.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>

#include "common/lower_case.h"
#include "common/utf8.h"

namespace kvscope::checkpoint {
namespace {

namespace fs = std::filesystem;

std::set<std::string> words_of(std::string_view text) {
    const auto words = lower_case_words(text);
    return {words.begin(), words.end()};
}

bool is_number(const std::string& word) {
    return std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

/// Whether a word does not identify a model: a kind of file, a part number or a storage type.
bool is_generic(const std::string& word) {
    constexpr std::array<std::string_view, 24> common = {
        "model", "models", "ggml", "gguf", "weights", "consolidated", "pytorch", "checkpoint",
        "final", "of",     "f16",  "f32",  "fp16",    "fp32",         "bf16",    "k",
        "s",     "m",      "l",    "xs",   "xxs",     "xl",           "nl",      "imat"};
    const bool is_quantisation = word.size() <= 4 &&
                                 (word.starts_with("q") || word.starts_with("iq") || word.starts_with("tq")) &&
                                 is_number(word.substr(word.find('q') + 1));
    return is_quantisation || is_number(word) || std::find(common.begin(), common.end(), word) != common.end();
}

}  // namespace

std::string name_of_gguf(const fs::path& file, std::string_view metadata_name) {
    std::string stem = utf8_lossy(file.stem().string());
    const auto of_file = words_of(stem);
    const auto of_metadata = words_of(metadata_name);
    if (of_metadata.empty()) return stem;
    const bool agrees = std::includes(of_file.begin(), of_file.end(), of_metadata.begin(), of_metadata.end());
    const bool is_common = std::all_of(of_file.begin(), of_file.end(), is_generic);
    return agrees || is_common ? std::string(metadata_name) : stem;
}

std::string name_of_directory(const fs::path& directory) {
    std::error_code error;
    fs::path folder = fs::weakly_canonical(directory, error);
    if (error) folder = directory;
    if (!folder.has_filename()) folder = folder.parent_path();  // after a trailing '/'
    constexpr std::string_view repository = "models--";
    const fs::path above = folder.parent_path();
    const std::string cached = above.parent_path().filename().string();
    if (above.filename() == "snapshots" && cached.starts_with(repository)) {
        const size_t name = cached.rfind("--") + 2;
        if (name < cached.size()) return utf8_lossy(cached.substr(name));
    }
    return utf8_lossy(folder.filename().string());
}

}  // namespace kvscope::checkpoint
