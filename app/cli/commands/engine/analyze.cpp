#include <cmath>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "app/cli/command.h"
#include "app/cli/engine/terminal_progress.h"
#include "app/cli/output_option.h"
#include "app/program/paths.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/spectra.h"

namespace kvscope::cli {
namespace {

/// How many of the largest eigenvalues hold a share of their sum.
int64_t modes_holding(std::span<const float> eigenvalues, double share) {
    double total = 0;
    for (const float value : eigenvalues) total += value;
    double held = 0;
    int64_t n = 0;
    while (n < static_cast<int64_t>(eigenvalues.size()) && held < share * total)
        held += eigenvalues[static_cast<size_t>(n++)];
    return n;
}

std::function<int()> declare(CLI::App& app) {
    const auto model = std::make_shared<std::filesystem::path>();
    const auto format = std::make_shared<OutputFormat>();
    const auto quiet = std::make_shared<bool>(false);
    app.add_option("model", *model, "GGUF file or Hugging Face directory (default: the model that comes along)");
    app.add_flag("-q,--quiet", *quiet, "No progress");
    format->declare(app);
    return [model, format, quiet] {
        const auto path = model->empty() ? program::default_model() : *model;
        TerminalProgress progress(*quiet);
        const auto checkpoint = checkpoint::open_checkpoint(path);
        const auto& config = checkpoint->config();
        trace::ModelRecord record;
        engine::add_spectra(*checkpoint, checkpoint->fingerprint(), record, progress);
        using analysis::ColumnType;
        analysis::Table table{"spectra",
                              "Spectra of the projections of " + config.name,
                              {{"layer", "Layer", "", ColumnType::integer},
                               {"projection", "Projection", ""},
                               {"largest", "Largest eigenvalue", "", ColumnType::real},
                               {"sum", "Sum", "", ColumnType::real},
                               {"modes_50", "Modes holding 50 %", "", ColumnType::integer},
                               {"modes_90", "Modes holding 90 %", "", ColumnType::integer},
                               {"modes_99", "Modes holding 99 %", "", ColumnType::integer},
                               {"modes", "Modes", "", ColumnType::integer}},
                              {}};
        const auto hidden = static_cast<size_t>(config.hidden_size);
        const std::pair<const char*, const std::vector<float>*> parts[] = {
            {"q", &record.spectrum_q}, {"k", &record.spectrum_k}, {"v", &record.spectrum_v}};
        for (int layer = 0; layer < config.n_layers; ++layer) {
            for (const auto& [name, values] : parts) {
                const auto row = std::span<const float>(*values).subspan(static_cast<size_t>(layer) * hidden, hidden);
                double sum = 0;
                for (const float value : row) sum += value;
                table.rows.push_back(
                    {{int64_t{layer}, std::string(name), double{row[0]}, sum, modes_holding(row, 0.5),
                      modes_holding(row, 0.9), modes_holding(row, 0.99), static_cast<int64_t>(hidden)}});
            }
        }
        format->print(table);
        return 0;
    };
}

}  // namespace

Command analyze_command() {
    return {"analyze", "Spectra of a model's query, key and value projections",
            "  kvscope analyze\n  kvscope analyze model.gguf --format csv", declare};
}

}  // namespace kvscope::cli
