#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/gui/engine/job_progress.h"
#include "engine/model/model.h"
#include "trace/records.h"

namespace kvscope::gui {

/// Where the model that a trace was made with is, the default model among the places.
/// @throws std::runtime_error where it is in none of them
std::filesystem::path place_of(const trace::ModelAttributes& wanted, std::vector<std::filesystem::path> places);

/// The one model that jobs run on, loaded when a job needs it. The jobs' thread alone.
class LoadedModel {
 public:
    using Pointer = std::shared_ptr<const engine::Model>;

    /// @param on_loaded called with each model that was loaded
    LoadedModel(JobProgress& progress, std::function<void(const Pointer&)> on_loaded)
        : progress_(progress), on_loaded_(std::move(on_loaded)) {}

    /// nullptr before the first was loaded.
    const Pointer& get() const { return model_; }
    bool is(const trace::ModelAttributes& wanted) const {
        return model_ && model_->fingerprint() == wanted.fingerprint;
    }

    /// What a person chose, or a job names: where it cannot be loaded, the next run is not made on another one.
    /// @param path empty: the one chosen last, else the default model
    /// @throws what engine::Model::open throws, std::runtime_error where there is no default model
    void choose(std::filesystem::path path, const std::string& dtype);

    /// The model that a trace was made with, in the trace's type. @throws as place_of() and engine::Model::open
    void need(const trace::ModelAttributes& wanted, const std::vector<std::filesystem::path>& places);

    /// What the loaded model's spectra would cost now.
    double spectra_seconds() const;
    void tell_spectra();

 private:
    void load(const std::filesystem::path& path, const std::string& dtype);

    JobProgress& progress_;
    std::function<void(const Pointer&)> on_loaded_;
    Pointer model_;
    std::filesystem::path path_;
    std::filesystem::path refused_;  ///< chosen last, and not to be loaded; empty: none
};

}  // namespace kvscope::gui
