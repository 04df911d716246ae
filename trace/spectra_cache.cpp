#include "trace/spectra_cache.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <vector>

#include "common/user_cache_folder.h"
#include "common/whole_file.h"

namespace kvscope::trace {

namespace {

namespace fs = std::filesystem;

/// Returns the six arrays in the order of the cache file.
template <class Record>
auto arrays_of(Record& record) {
    return std::array{&record.spectrum_q,      &record.head_spectrum_q, &record.spectrum_k,
                      &record.head_spectrum_k, &record.spectrum_v,      &record.head_spectrum_v};
}

std::array<std::size_t, 6> sizes_of(const ModelAttributes& model) {
    const auto size = [&](std::int64_t rows, std::int64_t length) {
        return static_cast<std::size_t>(model.n_layers * rows * length);
    };
    const std::size_t whole = size(1, model.hidden_size);
    const std::size_t query_heads = size(model.n_heads, model.head_dim);
    const std::size_t kv_heads = size(model.n_kv_heads, model.head_dim);
    return {whole, query_heads, whole, kv_heads, whole, kv_heads};
}

/// Returns the cache file. The path is empty without a cache folder or if the fingerprint is not a safe file name.
fs::path file_of(const ModelAttributes& model) {
    const auto& name = model.fingerprint;
    if (name.empty() || !std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) != 0; }))
        return {};
    const fs::path folder = user_cache_folder();
    return folder.empty() ? folder : folder / "spectra" / (name + ".f32");
}

}  // namespace

bool has_cached_spectra(const ModelAttributes& model) {
    std::size_t bytes = 0;
    for (const std::size_t size : sizes_of(model)) bytes += size * sizeof(float);
    const fs::path path = file_of(model);
    std::error_code error;
    return !path.empty() && fs::file_size(path, error) == bytes && !error;
}

bool read_cached_spectra(const ModelAttributes& model, ModelRecord& record) {
    if (!has_cached_spectra(model)) return false;
    std::ifstream file(file_of(model), std::ios::binary);
    ModelRecord read;
    const auto sizes = sizes_of(model);
    const auto arrays = arrays_of(read);
    for (std::size_t i = 0; i < arrays.size(); ++i) {
        arrays[i]->resize(sizes[i]);
        file.read(reinterpret_cast<char*>(arrays[i]->data()), static_cast<std::streamsize>(sizes[i] * sizeof(float)));
    }
    if (!file) return false;
    const auto targets = arrays_of(record);
    for (std::size_t i = 0; i < targets.size(); ++i) *targets[i] = std::move(*arrays[i]);
    return true;
}

void save_spectra_in_cache(const ModelAttributes& model, const ModelRecord& record) {
    const fs::path path = file_of(model);
    if (path.empty()) return;
    std::error_code error;
    fs::create_directories(path.parent_path(), error);
    std::vector<std::string_view> parts;
    for (const auto* array : arrays_of(record))
        parts.emplace_back(reinterpret_cast<const char*>(array->data()), array->size() * sizeof(float));
    try {
        write_whole_file(path, parts, true);
    } catch (const FileNotWritten&) {  // the cache is optional
    }
}

bool has_model_spectra(const Reader& reader) {
    return reader.has(Place::of_model(), schema::model::spectrum_q) || has_cached_spectra(reader.model());
}

}  // namespace kvscope::trace
