#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "app/cli/command.h"
#include "app/cli/inspect_model.h"
#include "app/cli/table_format_option.h"
#include "app/cli/terminal.h"
#include "app/program/input_files.h"
#include "engine/checkpoint/checkpoint.h"

namespace kvscope::cli::models_file {
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

/// Finds the models below a folder: model directories and GGUF files. Skips hidden folders and unreadable files.
class ModelSearch {
 public:
    explicit ModelSearch(const fs::path& folder) { look_into(folder, 0); }

    std::vector<fs::path> found() && {
        std::sort(found_.begin(), found_.end());
        return std::move(found_);
    }

 private:
    static constexpr int deepest = 5;

    void look_into(const fs::path& folder, int depth) {
        std::error_code error;
        const fs::path real = fs::canonical(folder, error);
        if (error || !visited_.insert(real).second) return;  // links may form cycles
        if (is_model(folder)) {
            found_.push_back(folder);
            return;
        }
        for (auto entry = fs::directory_iterator(folder, error); entry != fs::directory_iterator();
             entry.increment(error)) {
            if (error) return;
            const fs::path& path = entry->path();
            if (path.filename().string().starts_with('.')) continue;
            if (entry->is_directory(error)) {
                if (depth < deepest) look_into(path, depth + 1);
            } else if (path.extension() == ".gguf" && !is_further_part(path)) {
                found_.push_back(path);
            }
        }
    }

    /// Whether a file is a later part of a split model, such as "…-00002-of-00003.gguf".
    static bool is_further_part(const fs::path& path) {
        const std::string stem = path.stem().string();
        const size_t of = stem.rfind("-of-");
        return of != std::string::npos && of >= 5 && stem.size() == of + 9 && stem.substr(of - 5, 5) != "00001";
    }

    std::set<fs::path> visited_;
    std::vector<fs::path> found_;
};

std::function<int()> declare(CLI::App& app) {
    const auto folders = std::make_shared<std::vector<fs::path>>();
    const auto format = std::make_shared<OutputFormat>();
    app.add_option("folders", *folders, "Folders to search for GGUF files and model directories, with their subfolders")
        ->type_name("FOLDER");
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
            // Without a default model, only the folders are listed.
        }
        for (const auto& folder : *folders) {
            std::error_code error;
            if (!fs::is_directory(folder, error)) throw std::invalid_argument(folder.string() + " is not a folder");
            const auto found = ModelSearch(folder).found();
            if (found.empty()) print_to_stderr("no model found in " + folder.string());
            for (const auto& path : found) add_model(path, folder.string(), table);
        }
        format->print(table);
        return 0;
    };
}

}  // namespace
}  // namespace kvscope::cli::models_file

namespace kvscope::cli {

Command models_command() {
    using namespace models_file;
    return {"models", "List the default model and the models in the given folders",
            "  kvscope models\n  kvscope models ~/models ~/.cache/huggingface/hub", declare};
}

}  // namespace kvscope::cli
