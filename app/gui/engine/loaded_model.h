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
#include "trace/records/records.h"

namespace kvscope::gui {

/// Returns the path of a trace's model among `places` and the default model. Throws std::runtime_error if none matches.
[[nodiscard]] std::filesystem::path find_model_path(const trace::ModelAttributes& wanted,
                                                    std::vector<std::filesystem::path> places);

/// Whether a model is small enough to be loaded without a request, only to count tokens.
[[nodiscard]] bool is_small_model(const std::filesystem::path& path);

/// Reports the devices of this machine and their free memory. Can be called on any thread.
void report_devices(JobProgress& progress);

/// The model that jobs use. It is loaded on demand. Engine's thread only.
class LoadedModel {
 public:
    using Pointer = std::shared_ptr<const engine::Model>;

    LoadedModel(JobProgress& progress, std::function<void(const Pointer&)> on_loaded,
                std::function<void(const std::string&)> on_warning)
        : progress_(progress), on_loaded_(std::move(on_loaded)), on_warning_(std::move(on_warning)) {}

    [[nodiscard]] const Pointer& get() const { return model_; }
    [[nodiscard]] bool is(const trace::ModelAttributes& wanted) const {
        return model_ && model_->fingerprint() == wanted.fingerprint;
    }

    /// Loads a model chosen by the user or by a job. If that fails, later runs do not silently use another model.
    /// @param path empty for the model chosen last or, if there is none, the default model
    /// @param asked options with device and number type; nullptr: the device chosen last, any number type
    void choose(std::filesystem::path path, const engine::RunOptions* asked = nullptr);

    /// Loads the model of a trace with the trace's number type and device. If the device cannot be used, loads the
    /// model on the CPU and warns once per trace. Throws the exceptions of find_model_path() and engine::Model::open.
    void need(const trace::Reader& trace, const std::vector<std::filesystem::path>& places);

    /// Computes the spectra of a model's projections and saves them in the cache folder. Searches the model like
    /// need().
    void compute_spectra(const trace::ModelAttributes& wanted, const std::vector<std::filesystem::path>& places);
    [[nodiscard]] double spectra_seconds() const;
    void tell_spectra();

 private:
    [[nodiscard]] bool is_on(const std::string& device) const;
    void load(const std::filesystem::path& path, const std::string& dtype, const std::string& device);

    JobProgress& progress_;
    std::function<void(const Pointer&)> on_loaded_;
    std::function<void(const std::string&)> on_warning_;
    Pointer model_;
    std::filesystem::path path_;
    std::string device_ = "cpu";              ///< requested device of the loaded model
    std::string chosen_device_ = "cpu";       ///< device chosen by the user
    std::filesystem::path refused_;           ///< model chosen last, if it could not be loaded
    std::set<std::filesystem::path> warned_;  ///< traces for which the change of device was reported
};

}  // namespace kvscope::gui
