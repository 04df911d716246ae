#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/files/file_reader.h"

namespace kvscope::checkpoint {

/// An array in a GGUF file's metadata. Long arrays are not stored, except the tokenizer's tokens.
struct GgufArray {
    static constexpr uint64_t longest_kept = 4096;
    uint32_t element_type = 0;  ///< type in the file (enum gguf_type)
    uint64_t size = 0;
    std::vector<double> numbers;
    std::vector<std::string> texts;
};

using GgufValue = std::variant<int64_t, uint64_t, double, bool, std::string, GgufArray>;

struct GgufTensor {
    std::vector<int64_t> shape;  ///< slowest dimension first, as in PyTorch: (rows, columns)
    int type = 0;                ///< enum ggml_type
    std::string type_name;       ///< q4_1, f32, …
    uint64_t offset = 0;         ///< in bytes from the start of the file
    uint64_t n_bytes = 0;
    uint64_t row_bytes = 0;
};

/// One GGUF file (version 2 or 3). Checks every length and offset, because ggml aborts on some damaged files.
class GgufFile {
 public:
    explicit GgufFile(const std::filesystem::path& path);

    [[nodiscard]] const FileReader& file() const { return file_; }
    [[nodiscard]] const std::filesystem::path& path() const { return file_.path(); }
    [[nodiscard]] const std::map<std::string, GgufTensor, std::less<>>& tensors() const { return tensors_; }

    [[nodiscard]] const std::map<std::string, GgufValue, std::less<>>& values() const { return values_; }
    [[nodiscard]] bool has(std::string_view key) const { return values_.find(key) != values_.end(); }
    /// Returns nullopt if the file lacks the key. @throws CheckpointError if the value has another type
    [[nodiscard]] std::optional<int64_t> integer(std::string_view key) const;
    [[nodiscard]] std::optional<double> number(std::string_view key) const;
    [[nodiscard]] std::optional<bool> boolean(std::string_view key) const;
    [[nodiscard]] std::optional<std::string> text(std::string_view key) const;
    [[nodiscard]] const GgufArray* array(std::string_view key) const;

    /// Frees the metadata, including the vocabulary. Keys cannot be read afterwards.
    void drop_metadata() { values_.clear(); }

    [[noreturn]] void fail(const std::string& what) const;

 private:
    [[noreturn]] void wrong_type(std::string_view key, const char* expected) const;

    FileReader file_;
    std::map<std::string, GgufValue, std::less<>> values_;
    std::map<std::string, GgufTensor, std::less<>> tensors_;
};

}  // namespace kvscope::checkpoint
