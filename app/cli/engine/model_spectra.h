#pragma once

#include <filesystem>
#include <memory>

#include "analysis/figure.h"
#include "analysis/tables/table.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/common/progress.h"

namespace kvscope::cli {

/// A model's spectra as table, figure or trace, computed on request. Functions throw what engine::add_spectra() throws.
class ModelSpectra {
 public:
    /// @throws checkpoint::CheckpointError for files that cannot be used
    ModelSpectra(const std::filesystem::path& model, engine::Progress& progress);

    /// Returns per layer and projection: the largest eigenvalue, their sum, and how many hold 50, 90 and 99 % of it.
    analysis::Table table() const;

    /// Returns the figure `spectrum`. @throws std::runtime_error without a temporary folder, trace::WriteFailed on a
    /// full disk
    analysis::Figure figure() const;

    /// Writes a trace without prompts, for `export --figure spectrum` and the app. A stopped write leaves nothing.
    /// @throws what trace::Writer throws, except AlreadyComplete
    void write_trace(const std::filesystem::path& path, bool force) const;

 private:
    trace::ModelRecord record() const;

    std::unique_ptr<checkpoint::Checkpoint> checkpoint_;
    engine::Progress& progress_;
};

}  // namespace kvscope::cli
