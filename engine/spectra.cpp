#include "engine/spectra.h"

#include <ATen/Functions.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <vector>

#include "engine/error.h"

namespace kvscope::engine {
namespace {

namespace fs = std::filesystem;

struct Part {
    const char* projection;
    int n_heads;
    std::vector<float>* whole;
    std::vector<float>* heads;
};

std::array<Part, 3> parts_of(const checkpoint::ModelConfig& config, trace::ModelRecord& record) {
    return {{{"q_proj", config.n_heads, &record.spectrum_q, &record.head_spectrum_q},
             {"k_proj", config.n_kv_heads, &record.spectrum_k, &record.head_spectrum_k},
             {"v_proj", config.n_kv_heads, &record.spectrum_v, &record.head_spectrum_v}}};
}

/// Appends eigenvalues (…, n), ascending as LAPACK gives them, in descending order, each row filled up with zeros to
/// `width`: the rank is at most n.
void append_descending(const at::Tensor& eigenvalues, int64_t width, std::vector<float>& target) {
    const at::Tensor rows = at::flip(at::clamp_min(eigenvalues, 0.0), {-1}).to(at::kFloat).contiguous();
    const int64_t n = rows.size(-1);
    const float* data = rows.const_data_ptr<float>();
    for (int64_t row = 0; row < rows.numel() / n; ++row) {
        target.insert(target.end(), data + row * n, data + (row + 1) * n);
        target.insert(target.end(), static_cast<size_t>(width - n), 0.0f);
    }
}

fs::path cache_file(const std::string& fingerprint) {
    fs::path folder;
    if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg && *xdg)
        folder = xdg;
    else if (const char* home = std::getenv("HOME"); home && *home)
        folder = fs::path(home) / ".cache";
    else
        return {};
    return folder / "kvscope" / "spectra" / (fingerprint + ".f32");
}

/// Sizes of the six arrays, in the order of `parts_of`, whole before heads.
std::vector<size_t> sizes_of(const checkpoint::ModelConfig& config) {
    std::vector<size_t> sizes;
    for (const int heads : {config.n_heads, config.n_kv_heads, config.n_kv_heads}) {
        sizes.push_back(static_cast<size_t>(config.n_layers) * static_cast<size_t>(config.hidden_size));
        sizes.push_back(static_cast<size_t>(config.n_layers * heads) * static_cast<size_t>(config.head_dim));
    }
    return sizes;
}

bool read_cache(const fs::path& path, const checkpoint::ModelConfig& config, trace::ModelRecord& record) {
    const auto sizes = sizes_of(config);
    size_t total = 0;
    for (const size_t size : sizes) total += size * sizeof(float);
    std::error_code error;
    if (path.empty() || fs::file_size(path, error) != total || error) return false;
    std::ifstream file(path, std::ios::binary);
    size_t next = 0;
    for (auto& part : parts_of(config, record)) {
        for (auto* array : {part.whole, part.heads}) {
            array->resize(sizes[next++]);
            file.read(reinterpret_cast<char*>(array->data()),
                      static_cast<std::streamsize>(array->size() * sizeof(float)));
        }
    }
    return file.good();
}

/// A cache that cannot be written is done without.
void write_cache(const fs::path& path, const checkpoint::ModelConfig& config, trace::ModelRecord& record) {
    if (path.empty()) return;
    std::error_code error;
    fs::create_directories(path.parent_path(), error);
    fs::path temporary = path;
    temporary += ".part";
    std::ofstream file(temporary, std::ios::binary);
    for (const auto& part : parts_of(config, record)) {
        for (const auto* array : {part.whole, part.heads})
            file.write(reinterpret_cast<const char*>(array->data()),
                       static_cast<std::streamsize>(array->size() * sizeof(float)));
    }
    file.close();
    if (file)
        fs::rename(temporary, path, error);
    else
        fs::remove(temporary, error);
}

}  // namespace

void add_spectra(const checkpoint::Checkpoint& checkpoint, const std::string& fingerprint, trace::ModelRecord& record,
                 Progress& progress) {
    const auto& config = checkpoint.config();
    const auto cached = cache_file(fingerprint);
    if (read_cache(cached, config, record)) return;
    for (const auto& part : parts_of(config, record)) {
        part.whole->clear();
        part.heads->clear();
    }
    progress.begin("spectra", config.n_layers);
    for (int layer = 0; layer < config.n_layers; ++layer) {
        if (progress.cancelled()) throw Cancelled();
        for (const auto& part : parts_of(config, record)) {
            const int64_t rows = int64_t{part.n_heads} * config.head_dim;
            at::Tensor weight = at::empty({rows, config.hidden_size}, at::kFloat);
            checkpoint.read_f32("model.layers." + std::to_string(layer) + ".self_attn." + part.projection + ".weight",
                                std::span<float>(weight.data_ptr<float>(), static_cast<size_t>(weight.numel())));
            weight = weight.to(at::kDouble);
            // W^T W and W W^T share their eigenvalues but for zeros: the smaller one is solved.
            const at::Tensor gram = rows < config.hidden_size ? at::mm(weight, weight.t()) : at::mm(weight.t(), weight);
            append_descending(at::linalg_eigvalsh(gram), config.hidden_size, *part.whole);
            const at::Tensor heads = weight.view({part.n_heads, config.head_dim, config.hidden_size});
            const at::Tensor head_gram = config.head_dim <= config.hidden_size ? at::bmm(heads, heads.transpose(1, 2))
                                                                               : at::bmm(heads.transpose(1, 2), heads);
            append_descending(at::linalg_eigvalsh(head_gram), config.head_dim, *part.heads);
        }
        progress.advance(layer + 1);
    }
    write_cache(cached, config, record);
}

}  // namespace kvscope::engine
