#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <vector>

#include "app/cli/command.h"
#include "app/cli/inspect_model.h"
#include "app/cli/output_option.h"
#include "app/program/paths.h"
#include "engine/checkpoint/checkpoint.h"

namespace kvscope::cli {
namespace {

namespace fs = std::filesystem;

void add_model(const fs::path& path, const std::string& origin, analysis::Table& table) {
    try {
        const auto checkpoint = checkpoint::open_checkpoint(path);
        const auto& config = checkpoint->config();
        table.rows.push_back(
            {{config.name, config.family, int64_t{config.n_layers}, int64_t{config.n_heads}, int64_t{config.n_kv_heads},
              int64_t{config.head_dim}, config.context_length, origin, path.string()}});
    } catch (const std::exception& error) {
        table.rows.push_back({{path.filename().string(),
                               std::string("cannot be used: ") + error.what(),
                               {},
                               {},
                               {},
                               {},
                               {},
                               origin,
                               path.string()}});
    }
}

std::function<int()> declare(CLI::App& app) {
    const auto folders = std::make_shared<std::vector<fs::path>>();
    const auto format = std::make_shared<OutputFormat>();
    app.add_option("folders", *folders, "Folders whose GGUF files and model directories are listed, too");
    format->declare(app);
    return [folders, format] {
        using analysis::ColumnType;
        analysis::Table table{"models",
                              "Models",
                              {{"name", "Model", ""},
                               {"family", "Family", ""},
                               {"n_layers", "Layers", "", ColumnType::integer},
                               {"n_heads", "Heads", "", ColumnType::integer},
                               {"n_kv_heads", "KV heads", "", ColumnType::integer},
                               {"head_dim", "Head size", "", ColumnType::integer},
                               {"context", "Context", "tokens", ColumnType::integer},
                               {"origin", "From", ""},
                               {"path", "Path", ""}},
                              {}};
        try {
            add_model(program::default_model(), "default", table);
        } catch (const std::exception&) {
            // A build without a default model lists the folders alone.
        }
        for (const auto& folder : *folders) {
            if (!fs::is_directory(folder)) throw std::invalid_argument(folder.string() + " is no folder");
            std::vector<fs::path> found;
            if (is_model(folder)) found.push_back(folder);
            for (const auto& entry : fs::directory_iterator(folder)) {
                const bool directory = entry.is_directory() && is_model(entry.path());
                if (directory || entry.path().extension() == ".gguf") found.push_back(entry.path());
            }
            std::sort(found.begin(), found.end());
            for (const auto& path : found) add_model(path, folder.string(), table);
        }
        format->print(table);
        return 0;
    };
}

}  // namespace

Command models_command() {
    return {"models", "The default model, and those in the folders named",
            "  kvscope models\n  kvscope models ~/models", declare};
}

}  // namespace kvscope::cli
