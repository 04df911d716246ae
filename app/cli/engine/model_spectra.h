#pragma once

#include <filesystem>
#include <memory>

#include "analysis/figure.h"
#include "analysis/tables/table.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/common/progress.h"

namespace kvscope::cli {

/// A model's spectra, as a table, a picture or a trace. Each is made when it is asked for.
/// Every function throws what engine::add_spectra() throws.
class ModelSpectra {
 public:
    /// @throws checkpoint::CheckpointError for files that cannot be used
    ModelSpectra(const std::filesystem::path& model, engine::Progress& progress);

    /// A row for each layer's projection: its largest eigenvalue, their sum, and how many hold 50, 90 and 99 % of it.
    analysis::Table table() const;

    /// The figure `spectrum` of a trace of the model.
    /// @throws std::runtime_error where no temporary folder can be had, trace::WriteFailed where it has no room
    analysis::Figure figure() const;

    /// A trace without prompts, which `export --figure spectrum` draws and the window opens. One that is there already,
    /// of the same model, stays.
    /// @throws what trace::Writer throws, but AlreadyComplete. Nothing is left where it was stopped.
    void write_trace(const std::filesystem::path& path, bool force) const;

 private:
    trace::ModelRecord record() const;

    std::unique_ptr<checkpoint::Checkpoint> checkpoint_;
    engine::Progress& progress_;
};

}  // namespace kvscope::cli
