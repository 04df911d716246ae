#pragma once

#include <filesystem>
#include <memory>

#include "analysis/drawing/figure.h"
#include "analysis/tables/table.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/common/progress.h"
#include "trace/records/records.h"

namespace kvscope::cli {

/// Computes the spectra of a model's projections as a table, figure or trace. Functions throw as
/// engine::add_projection_spectra().
class ModelSpectra {
 public:
    /// @throws checkpoint::CheckpointError if the model's files cannot be used
    ModelSpectra(const std::filesystem::path& model, engine::Progress& progress);

    /// Returns per layer and projection: largest eigenvalue, sum, and number of modes for 50, 90 and 99 % of the sum.
    [[nodiscard]] analysis::Table table() const;

    /// Returns the figure `spectrum`. @throws std::runtime_error or trace::WriteFailed if a temporary trace fails
    [[nodiscard]] analysis::Figure figure() const;

    /// Writes a trace without prompts, or removes it if writing fails. @throws as trace::Writer, except AlreadyComplete
    void write_trace(const std::filesystem::path& path, bool force) const;

 private:
    [[nodiscard]] trace::ModelRecord record() const;

    std::unique_ptr<checkpoint::Checkpoint> checkpoint_;
    engine::Progress& progress_;
};

}  // namespace kvscope::cli
