#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "app/gui/engine/job_progress.h"
#include "engine/model/model.h"
#include "engine/options/run_options.h"
#include "trace/reader.h"
#include "trace/records.h"

namespace kvscope::gui {

/// Where the model that a trace was made with is, the default model among the places.
/// @throws std::runtime_error where it is in none of them
std::filesystem::path place_of(const trace::ModelAttributes& wanted, std::vector<std::filesystem::path> places);

/// Tells which devices this machine has, and what is free of their memory now. Of any thread.
void tell_devices(JobProgress& progress);

/// The one model that jobs run on, loaded when a job needs it. The jobs' thread alone.
class LoadedModel {
 public:
    using Pointer = std::shared_ptr<const engine::Model>;

    /// @param on_loaded called with each model that was loaded
    /// @param on_warning called with a sentence on what is not as it was asked for
    LoadedModel(JobProgress& progress, std::function<void(const Pointer&)> on_loaded,
                std::function<void(const std::string&)> on_warning)
        : progress_(progress), on_loaded_(std::move(on_loaded)), on_warning_(std::move(on_warning)) {}

    /// nullptr before the first was loaded.
    const Pointer& get() const { return model_; }
    bool is(const trace::ModelAttributes& wanted) const {
        return model_ && model_->fingerprint() == wanted.fingerprint;
    }

    /// What a person chose, or a job names: where it cannot be loaded, the next run is not made on another one.
    /// @param path empty: the one chosen last, else the default model
    /// @throws what engine::device_for and engine::Model::open throw, std::runtime_error where there is no default
    /// model
    /// @param asked as `kvscope run` takes them; nothing: on the device chosen last, in whichever type it is there
    void choose(std::filesystem::path path, const engine::RunOptions* asked = nullptr);

    /// The model that a trace was made with, in the trace's type and on the trace's device; where it cannot be used
    /// there, on the processor, which is told once for each trace. @throws as place_of() and engine::Model::open
    void need(const trace::Reader& trace, const std::vector<std::filesystem::path>& places);

    /// What the loaded model's spectra would cost now.
    double spectra_seconds() const;
    void tell_spectra();

 private:
    bool is_on(const std::string& device) const;
    /// @param dtype empty: any
    void load(const std::filesystem::path& path, const std::string& dtype, const std::string& device);

    JobProgress& progress_;
    std::function<void(const Pointer&)> on_loaded_;
    std::function<void(const std::string&)> on_warning_;
    Pointer model_;
    std::filesystem::path path_;
    std::string device_ = "cpu";              ///< as it was asked for with the model
    std::string chosen_device_ = "cpu";       ///< by a person, last
    std::filesystem::path refused_;           ///< chosen last, and not to be loaded; empty: none
    std::set<std::filesystem::path> warned_;  ///< traces that are computed on another device than theirs
};

}  // namespace kvscope::gui
