#include "engine/files/content_kind.h"

#include <algorithm>
#include <array>
#include <utility>

#include "common/lower_case.h"

namespace kvscope::checkpoint {

using namespace std::string_view_literals;

std::string kind_of_content(std::string_view begin) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 14> kinds = {{
        {"GGUF"sv, "a GGUF file"},
        {"version https://git-lfs"sv, "a Git LFS pointer, not the file itself (run `git lfs pull` in its folder)"},
        {"\x89HDF\r\n"sv, "an HDF5 file, such as a trace of kvscope"},
        {"PK\x03\x04"sv, "a ZIP archive, such as PyTorch's pickled weights"},
        {"\x80\x02"sv, "a Python pickle"},
        {"\x80\x03"sv, "a Python pickle"},
        {"\x80\x04"sv, "a Python pickle"},
        {"\x1f\x8b"sv, "compressed by gzip"},
        {"\x93NUMPY"sv, "a NumPy array"},
        {"%PDF"sv, "a PDF document"},
        {"\x89PNG"sv, "a PNG picture"},
        {"\x7f"
         "ELF"sv,
         "a program"},
        {"lmgg"sv, "a GGML file, older than GGUF"},
        {"tjgg"sv, "a GGML file, older than GGUF"},
    }};
    for (const auto& [magic, kind] : kinds)
        if (begin.starts_with(magic)) return std::string(kind);

    // In UTF-16, an ASCII character has a zero byte.
    if (begin.starts_with("\xFF\xFE") && begin.size() > 3 && begin[3] == '\0') return "text in UTF-16";
    const size_t first = std::min(begin.find_first_not_of(" \t\r\n"), begin.size());
    const std::string tag = lower_case(begin.substr(first, 15));
    if (tag.starts_with("<!doctype html") || tag.starts_with("<html"))
        return "a web page (HTML), as a failed download leaves it";
    if (tag.starts_with("<?xml")) return "XML";
    if (begin.size() > 8 && begin[8] == '{' && begin.substr(2, 6) == "\0\0\0\0\0\0"sv)
        return std::string(safetensors_kind);
    return {};
}

}  // namespace kvscope::checkpoint
