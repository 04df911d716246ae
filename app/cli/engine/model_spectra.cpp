#include "app/cli/engine/model_spectra.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>

#include "analysis/drawing/figure_definition.h"
#include "app/cli/engine/temporary_folder.h"
#include "app/program/engine/prepared_job.h"
#include "app/program/version.h"
#include "common/json.h"
#include "engine/common/engine_error.h"
#include "engine/model/model.h"
#include "engine/projection_spectra.h"
#include "trace/reader.h"
#include "trace/records/schema.h"
#include "trace/writer.h"

namespace kvscope::cli {
namespace {

namespace fs = std::filesystem;

int64_t modes_holding(std::span<const float> eigenvalues, double share) {
    double total = 0;
    for (const float value : eigenvalues) total += value;
    double held = 0;
    int64_t n = 0;
    while (n < static_cast<int64_t>(eigenvalues.size()) && held < share * total)
        held += eigenvalues[static_cast<size_t>(n++)];
    return n;
}

std::string generator() { return fmt::format("kvscope {}", program::version()); }

}  // namespace

ModelSpectra::ModelSpectra(const fs::path& model, engine::Progress& progress)
    : checkpoint_(checkpoint::open_checkpoint(model)), progress_(progress) {}

trace::ModelRecord ModelSpectra::record() const {
    trace::ModelRecord record;
    static_cast<trace::ModelAttributes&>(record) =
        engine::model_attributes(checkpoint_->config(), checkpoint_->fingerprint());
    record.dtype = "f32";  // the weights are read as f32
    engine::add_projection_spectra(*checkpoint_, record.fingerprint, record, progress_);
    return record;
}

analysis::Table ModelSpectra::table() const {
    const trace::ModelRecord model = record();
    using analysis::ColumnType;
    analysis::Table table{"spectra",
                          "Spectra of the projections of " + model.name,
                          {{"layer", "Layer", "", ColumnType::integer},
                           {"projection", "Projection", ""},
                           {"largest", "Largest eigenvalue", "", ColumnType::real},
                           {"sum", "Sum", "", ColumnType::real},
                           {"modes_50", "Modes for 50 % of the sum", "", ColumnType::integer},
                           {"modes_90", "Modes for 90 % of the sum", "", ColumnType::integer},
                           {"modes_99", "Modes for 99 % of the sum", "", ColumnType::integer},
                           {"modes", "Modes", "", ColumnType::integer}},
                          {}};
    struct Part {
        const char* name;
        const std::vector<float>& values;
        int64_t n_heads;
    };
    const Part parts[] = {{"q", model.spectrum_q, model.n_heads},
                          {"k", model.spectrum_k, model.n_kv_heads},
                          {"v", model.spectrum_v, model.n_kv_heads}};
    for (int64_t layer = 0; layer < model.n_layers; ++layer) {
        for (const auto& [name, values, n_heads] : parts) {
            // W has no more modes than outputs. The other recorded eigenvalues of WᵀW are zero.
            const int64_t n_modes = std::min(model.hidden_size, n_heads * model.head_dim);
            const auto row = std::span<const float>(values).subspan(static_cast<size_t>(layer * model.hidden_size),
                                                                    static_cast<size_t>(n_modes));
            double sum = 0;
            for (const float value : row) sum += value;
            table.rows.push_back({{layer, std::string(name), double{row[0]}, sum, modes_holding(row, 0.5),
                                   modes_holding(row, 0.9), modes_holding(row, 0.99), n_modes}});
        }
    }
    return table;
}

analysis::Figure ModelSpectra::figure() const {
    const TemporaryFolder folder;
    const fs::path path = folder.path() / "model.h5";
    trace::Writer writer(path, "{}", {.generator = generator()});
    writer.write_model(record());
    writer.finish();
    analysis::Figure figure = analysis::figure_definition("spectrum").make(trace::Reader(path), {});
    // The trace exists only for this figure, so its name and date are removed.
    figure.recipe.erase(std::remove_if(figure.recipe.begin(), figure.recipe.end(),
                                       [](const auto& entry) { return entry.first == "Trace"; }),
                        figure.recipe.end());
    figure.created_utc.clear();
    return figure;
}

void ModelSpectra::write_trace(const fs::path& path, bool force) const {
    nlohmann::ordered_json recipe;
    recipe["model"] = checkpoint_->fingerprint();
    recipe[trace::schema::root::recipe_spectra] = true;
    try {
        trace::Writer writer(path, recipe.dump(), {.force = force, .generator = generator()});
        writer.write_model(record());
        writer.finish();
    } catch (const trace::AlreadyComplete&) {
        progress_.message(fmt::format("{} already contains this trace: nothing to do", path.string()));
        return;
    } catch (const trace::OutputExists&) {
        throw;
    } catch (const trace::OutputBusy&) {
        throw;
    } catch (...) {
        program::remove_part_folder_without_prompts(path);
        throw;
    }
    progress_.message(fmt::format("{} written", path.string()));
}

}  // namespace kvscope::cli
