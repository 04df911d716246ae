#pragma once

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "policies/methods/echo_maps.h"

namespace kvscope::policies::test {

/// Maps with a simple formula, as in scripts/golden/echokv.py: approximately the first layer's numbers.
[[nodiscard]] inline EchoMaps formula_maps(const EchoLayout& layout, const std::string& model_fingerprint) {
    EchoMaps maps;
    maps.layout = layout;
    maps.model_fingerprint = model_fingerprint;
    for (int layer = 0; layer < layout.n_layers; ++layer) {
        if (!layout.is_rebuilt(layer)) continue;
        const auto matrix = [&](int kind) {
            Matrix made{layout.width() + layout.local, layout.width() - layout.local, {}};
            for (int i = 0; i < made.n_rows; ++i)
                for (int j = 0; j < made.n_columns; ++j)
                    made.numbers.push_back(
                        static_cast<float>((i == j + layout.local ? 0.8 : 0.0) +
                                           0.02 * std::sin(0.37 * (i + 1) * (j + 1) + layer + 0.5 * kind)));
            return made;
        };
        maps.layers[layer] = {matrix(0), matrix(1)};
    }
    return maps;
}

/// A file with such maps, removed by the destructor.
class EchoMapsFile {
 public:
    EchoMapsFile(const EchoLayout& layout, const std::string& model_fingerprint)
        : EchoMapsFile(to_safetensors(formula_maps(layout, model_fingerprint))) {}
    explicit EchoMapsFile(const std::string& bytes) {
        static int made = 0;
        path_ = std::filesystem::temp_directory_path() /
                ("kvscope_echo_" + std::to_string(getpid()) + "_" + std::to_string(made++) + ".safetensors");
        std::ofstream(path_, std::ios::binary) << bytes;
    }
    EchoMapsFile(const EchoMapsFile&) = delete;
    EchoMapsFile& operator=(const EchoMapsFile&) = delete;
    ~EchoMapsFile() { std::filesystem::remove(path_); }
    [[nodiscard]] std::string path() const { return path_.string(); }

 private:
    std::filesystem::path path_;
};

/// Returns the path of a file for a model of this size without a fingerprint. It is removed at exit.
[[nodiscard]] inline std::string echo_maps_for(const ModelShape& shape) {
    static std::map<std::tuple<int, int, int>, std::unique_ptr<EchoMapsFile>> files;
    auto& file = files[{shape.n_layers, shape.n_kv_heads, shape.head_dim}];
    if (!file) file = std::make_unique<EchoMapsFile>(echo_layout_for_ratio(shape.n_layers > 1 ? 0.7 : 1.0, shape), "");
    return file->path();
}

}  // namespace kvscope::policies::test
