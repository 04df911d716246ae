#include "engine/files/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>

#include "common/json.h"
#include "engine/files/checkpoint_error.h"
#include "engine/files/content_kind.h"
#include "engine/files/json_text.h"
#include "kernels/bf16.h"
#include "kernels/threads/parallel_with_scratch.h"

namespace kvscope::checkpoint {
namespace {

using nlohmann::json;

constexpr uint64_t longest_header = 100'000'000;  // as in the reference implementation
constexpr int64_t elements_per_task = int64_t{1} << 18;

static_assert(std::endian::native == std::endian::little, "weights are read as little-endian");

uint64_t dtype_bits(std::string_view dtype) {
    using Entry = std::pair<std::string_view, uint64_t>;
    constexpr std::array<Entry, 15> known = {
        Entry{"F32", 32}, Entry{"F16", 16}, Entry{"BF16", 16}, Entry{"F64", 64},    Entry{"I64", 64},
        Entry{"I32", 32}, Entry{"I16", 16}, Entry{"I8", 8},    Entry{"U8", 8},      Entry{"BOOL", 8},
        Entry{"U16", 16}, Entry{"U32", 32}, Entry{"U64", 64},  Entry{"F8_E4M3", 8}, Entry{"F8_E5M2", 8},
    };
    const auto* found = std::find_if(known.begin(), known.end(), [&](const Entry& e) { return e.first == dtype; });
    return found == known.end() ? 0 : found->second;
}

uint64_t as_unsigned(const json& value, const std::filesystem::path& path, const std::string& what) {
    if (value.is_number_unsigned()) return value.get<uint64_t>();
    throw CheckpointError(path, what + " is " + value.dump() + ", expected a whole number of at least 0");
}

SafetensorsEntry parse_entry(const std::string& name, const json& value, uint64_t data_bytes,
                             const std::filesystem::path& path) {
    const std::string tensor = "tensor " + name;
    if (!value.is_object() || !value.contains("dtype") || !value["dtype"].is_string() || !value.contains("shape") ||
        !value["shape"].is_array() || !value.contains("data_offsets") || !value["data_offsets"].is_array() ||
        value["data_offsets"].size() != 2) {
        throw CheckpointError(path, tensor + ": expected dtype, shape and two data_offsets in the header");
    }
    SafetensorsEntry entry;
    entry.dtype = value["dtype"].get<std::string>();
    entry.begin = as_unsigned(value["data_offsets"][0], path, tensor + ": an offset");
    entry.end = as_unsigned(value["data_offsets"][1], path, tensor + ": an offset");
    if (entry.begin > entry.end || entry.end > data_bytes) {
        throw CheckpointError(path, tensor + " is at bytes " + std::to_string(entry.begin) + " to " +
                                        std::to_string(entry.end) + ", but the file holds " +
                                        std::to_string(data_bytes) + " bytes of tensors: it is truncated or damaged");
    }
    uint64_t n = 1;
    bool overflow = false;
    for (const json& size : value["shape"]) {
        const uint64_t extent = as_unsigned(size, path, tensor + ": a dimension");
        overflow = overflow || __builtin_mul_overflow(n, extent, &n) || extent > INT64_MAX;
        entry.shape.push_back(static_cast<int64_t>(extent));
    }
    const uint64_t bits = dtype_bits(entry.dtype);
    uint64_t expected_bits = 0;
    overflow = overflow || __builtin_mul_overflow(n, bits, &expected_bits);
    if (overflow || (bits != 0 && expected_bits / 8 != entry.end - entry.begin)) {
        throw CheckpointError(path, tensor + " of type " + entry.dtype + " and shape " + value["shape"].dump() +
                                        " has " + std::to_string(entry.end - entry.begin) + " bytes, expected " +
                                        (overflow ? "far more" : std::to_string(expected_bits / 8)));
    }
    return entry;
}

void check_layout(std::vector<std::pair<const SafetensorsEntry*, std::string>> tensors, uint64_t data_bytes,
                  const std::filesystem::path& path) {
    std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
        return std::pair(a.first->begin, a.first->end) < std::pair(b.first->begin, b.first->end);
    });
    uint64_t expected = 0;
    for (const auto& [entry, name] : tensors) {
        if (entry->begin != expected) {
            throw CheckpointError(path, "tensor " + name + " begins at byte " + std::to_string(entry->begin) +
                                            " of the data, expected " + std::to_string(expected) +
                                            (entry->begin < expected ? ": tensors overlap" : ": there is a gap"));
        }
        expected = entry->end;
    }
    if (expected != data_bytes) {
        throw CheckpointError(path, "holds " + std::to_string(data_bytes) +
                                        " bytes of tensors, but its header describes " + std::to_string(expected));
    }
}

json read_header(const FileReader& file, uint64_t& header_bytes) {
    const auto& path = file.path();
    if (file.size() < 8) {
        throw CheckpointError(path, "has " + std::to_string(file.size()) + " bytes; a safetensors file has at least 8");
    }
    file.read_at(0, std::as_writable_bytes(std::span(&header_bytes, 1)));
    if (header_bytes > longest_header || header_bytes > file.size() - 8) {
        std::string start(std::min<uint64_t>(file.size(), 256), '\0');
        file.read_at(0, std::as_writable_bytes(std::span<char>(start)));
        if (const std::string kind = kind_of_content(start); !kind.empty() && kind != safetensors_kind)
            throw CheckpointError(path, "is " + kind + ", expected a safetensors file");
        throw CheckpointError(path, "is not a safetensors file, or is truncated: its header would have " +
                                        std::to_string(header_bytes) + " bytes, the file has " +
                                        std::to_string(file.size()));
    }
    std::string text(header_bytes, '\0');
    file.read_at(8, std::as_writable_bytes(std::span<char>(text)));
    json header;
    try {
        header = parse_json(text);
    } catch (const std::runtime_error& error) {
        throw CheckpointError(
            path, std::string("the header ") + error.what() + ": the file is damaged or not a safetensors file");
    }
    if (!header.is_object()) {
        throw CheckpointError(path, "the header is not a JSON object: the file is damaged or not a safetensors file");
    }
    return header;
}

}  // namespace

bool is_readable_dtype(std::string_view dtype) { return dtype == "F32" || dtype == "F16" || dtype == "BF16"; }

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : file_(path) {
    uint64_t header_bytes = 0;
    const json header = read_header(file_, header_bytes);
    const uint64_t data_begin = 8 + header_bytes;
    const uint64_t data_bytes = file_.size() - data_begin;
    std::vector<std::pair<const SafetensorsEntry*, std::string>> tensors;
    for (const auto& [name, value] : header.items()) {
        if (name == "__metadata__") continue;
        const auto [position, inserted] = entries_.emplace(name, parse_entry(name, value, data_bytes, path));
        tensors.emplace_back(&position->second, name);
    }
    check_layout(std::move(tensors), data_bytes, path);
    for (auto& [name, entry] : entries_) {
        entry.begin += data_begin;
        entry.end += data_begin;
    }
}

namespace {

template <typename Convert>
void read_pieces(const FileReader& file, const SafetensorsEntry& entry, int64_t n, size_t element_bytes,
                 Convert&& convert) {
    const int64_t n_tasks = (n + elements_per_task - 1) / elements_per_task;
    kernels::parallel_with_scratch<std::vector<std::byte>>(n_tasks, [&](int64_t task, std::vector<std::byte>& buffer) {
        const int64_t first = task * elements_per_task;
        const int64_t count = std::min(elements_per_task, n - first);
        buffer.resize(static_cast<size_t>(count) * element_bytes);
        file.read_at(entry.begin + static_cast<uint64_t>(first) * element_bytes, buffer);
        convert(buffer.data(), first, count);
    });
}

template <typename T>
void read_verbatim(const FileReader& file, const SafetensorsEntry& entry, std::span<T> out) {
    const auto n = static_cast<int64_t>(out.size());
    kernels::parallel_with_scratch<char>((n + elements_per_task - 1) / elements_per_task, [&](int64_t task, char&) {
        const int64_t first = task * elements_per_task;
        const int64_t count = std::min(elements_per_task, n - first);
        file.read_at(entry.begin + static_cast<uint64_t>(first) * sizeof(T),
                     std::as_writable_bytes(out.subspan(static_cast<size_t>(first), static_cast<size_t>(count))));
    });
}

/// Converts n numbers of a file to f32, or to the bits of bf16.
template <class Stored, class T>
void convert(const std::byte* raw, int64_t n, T* out) {
    for (int64_t i = 0; i < n; ++i) {
        Stored stored{};
        std::memcpy(&stored, raw + i * static_cast<int64_t>(sizeof stored), sizeof stored);
        const float value = kernels::to_float(stored);
        if constexpr (std::is_same_v<T, float>)
            out[i] = value;
        else
            out[i] = kernels::bf16_from_float(value).bits;
    }
}

[[noreturn]] void refuse_dtype(const FileReader& file, const SafetensorsEntry& entry) {
    throw CheckpointError(file.path(), "holds a tensor of type " + entry.dtype + ", expected F32, F16 or BF16");
}

}  // namespace

void SafetensorsFile::read_f32(const SafetensorsEntry& entry, std::span<float> out) const {
    if (entry.dtype == "F32") return read_verbatim(file_, entry, out);
    if (!is_readable_dtype(entry.dtype)) refuse_dtype(file_, entry);
    const bool is_bf16 = entry.dtype == "BF16";
    read_pieces(file_, entry, static_cast<int64_t>(out.size()), 2,
                [&](const std::byte* raw, int64_t first, int64_t count) {
                    const auto read = is_bf16 ? convert<kernels::bf16, float> : convert<kernels::half, float>;
                    read(raw, count, out.data() + first);
                });
}

void SafetensorsFile::read_stored(const SafetensorsEntry& entry, std::span<std::byte> out) const {
    read_verbatim(file_, entry, out);
}

void SafetensorsFile::read_bf16(const SafetensorsEntry& entry, std::span<uint16_t> out) const {
    if (entry.dtype == "BF16") return read_verbatim(file_, entry, out);
    if (!is_readable_dtype(entry.dtype)) refuse_dtype(file_, entry);
    const bool is_f32 = entry.dtype == "F32";
    read_pieces(file_, entry, static_cast<int64_t>(out.size()), is_f32 ? 4 : 2,
                [&](const std::byte* raw, int64_t first, int64_t count) {
                    const auto read = is_f32 ? convert<float, uint16_t> : convert<kernels::half, uint16_t>;
                    read(raw, count, out.data() + first);
                });
}

bool SafetensorsFile::same_bytes(const SafetensorsEntry& a, const SafetensorsFile& other,
                                 const SafetensorsEntry& b) const {
    if (a.dtype != b.dtype || a.shape != b.shape) return false;
    constexpr uint64_t piece = uint64_t{1} << 20;
    std::vector<std::byte> left(piece), right(piece);
    for (uint64_t done = 0; done < a.end - a.begin; done += piece) {
        const size_t n = static_cast<size_t>(std::min(piece, a.end - a.begin - done));
        file_.read_at(a.begin + done, std::span(left).first(n));
        other.file_.read_at(b.begin + done, std::span(right).first(n));
        if (std::memcmp(left.data(), right.data(), n) != 0) return false;
    }
    return true;
}

}  // namespace kvscope::checkpoint
