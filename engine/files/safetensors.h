#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/files/file_reader.h"

namespace kvscope::checkpoint {

struct SafetensorsEntry {
    std::string dtype;  ///< type in the file: F32, F16, BF16, I64, …
    std::vector<int64_t> shape;
    uint64_t begin = 0;  ///< in bytes from the start of the file
    uint64_t end = 0;
};

/// One .safetensors file: eight bytes with the header's length, a JSON header, and the tensors' bytes without gaps.
class SafetensorsFile {
 public:
    /// @throws CheckpointError if the header is invalid
    explicit SafetensorsFile(const std::filesystem::path& path);

    [[nodiscard]] const std::filesystem::path& path() const { return file_.path(); }
    [[nodiscard]] const std::map<std::string, SafetensorsEntry, std::less<>>& entries() const { return entries_; }

    /// Converts F32, F16 and BF16 tensors. `out` must have as many elements as the tensor.
    void read_f32(const SafetensorsEntry& entry, std::span<float> out) const;
    void read_stored(const SafetensorsEntry& entry, std::span<std::byte> out) const;
    void read_bf16(const SafetensorsEntry& entry, std::span<uint16_t> out) const;

    bool same_bytes(const SafetensorsEntry& a, const SafetensorsFile& other, const SafetensorsEntry& b) const;

 private:
    FileReader file_;
    std::map<std::string, SafetensorsEntry, std::less<>> entries_;
};

[[nodiscard]] bool is_readable_dtype(std::string_view dtype);

}  // namespace kvscope::checkpoint
