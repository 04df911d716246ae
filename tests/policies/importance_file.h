#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "policies/registry/registry.h"
#include "tests/policies/echo_maps_file.h"

namespace kvscope::policies::test {

/// A file of head importances for headkv, removed by the destructor.
class ImportanceFile {
 public:
    explicit ImportanceFile(const std::string& text) {
        static int made = 0;
        path_ = std::filesystem::temp_directory_path() /
                ("kvscope_importance_" + std::to_string(getpid()) + "_" + std::to_string(made++) + ".json");
        std::ofstream(path_) << text;
    }
    ImportanceFile(const ImportanceFile&) = delete;
    ImportanceFile& operator=(const ImportanceFile&) = delete;
    ~ImportanceFile() { std::filesystem::remove(path_); }
    [[nodiscard]] std::string path() const { return path_.string(); }

 private:
    std::filesystem::path path_;
};

/// Returns the path of a file for a model of this size, with some zeros. It is removed at exit.
[[nodiscard]] inline std::string importance_for(const ModelShape& shape) {
    static std::map<std::pair<int, int>, std::unique_ptr<ImportanceFile>> files;
    auto& file = files[{shape.n_layers, shape.n_heads}];
    if (!file) {
        std::string text;
        for (int layer = 0; layer < shape.n_layers; ++layer) {
            for (int head = 0; head < shape.n_heads; ++head) {
                text += (text.empty() ? "{\"" : ", \"") + std::to_string(layer) + "-" + std::to_string(head) +
                        "\": [0." + std::to_string((1 + layer * 7 + head * 3) % 5) + "]";
            }
        }
        file = std::make_unique<ImportanceFile>(text + "}");
    }
    return file->path();
}

/// A policy with its defaults and the files that it requires, for a model of this size.
[[nodiscard]] inline PolicySpec usable(const Definition& definition, const ModelShape& shape) {
    PolicySpec spec{&definition, ParameterValues(definition.parameters)};
    if (spec.values.has("importance")) spec.values.set("importance", importance_for(shape));
    if (spec.values.has("maps")) spec.values.set("maps", echo_maps_for(shape));
    return spec;
}

}  // namespace kvscope::policies::test
