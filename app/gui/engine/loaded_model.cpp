#include "app/gui/engine/loaded_model.h"

#include <fmt/format.h>

#include <stdexcept>

#include "app/program/paths.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/common/error.h"
#include "engine/model/device.h"
#include "engine/options/device_name.h"
#include "engine/spectra.h"

namespace kvscope::gui {

namespace fs = std::filesystem;

fs::path place_of(const trace::ModelAttributes& wanted, std::vector<fs::path> places) {
    try {
        places.push_back(program::default_model());
    } catch (const std::exception&) {
        // There is none: it may be in another place.
    }
    for (const auto& place : places) {
        try {
            if (checkpoint::open_checkpoint(place)->fingerprint() == wanted.fingerprint) return place;
        } catch (const std::exception&) {
            continue;  // moved since, or damaged: not the one
        }
    }
    throw std::runtime_error(fmt::format(
        "the trace was made with {}, which is neither loaded, nor the default model, nor among the recent ones: load "
        "that model first",
        wanted.name));
}

void tell_devices(JobProgress& progress) { progress.set_devices(engine::devices()); }

void LoadedModel::choose(fs::path path, const engine::RunOptions* asked) {
    if (path.empty()) path = refused_;
    if (path.empty()) path = model_ ? path_ : program::default_model();
    try {
        refused_ = path;
        load(path, asked ? asked->dtype : "", asked ? asked->device : device_);
        refused_.clear();
        progress_.set_model_error("");
    } catch (const engine::Cancelled&) {
        progress_.set_model_error(path.filename().string() + " is not loaded: that was cancelled");
        throw;
    } catch (const std::exception& error) {
        progress_.set_model_error(error.what());
        throw;
    }
}

void LoadedModel::need(const trace::ModelAttributes& wanted, const std::vector<fs::path>& places) {
    if (is(wanted) && model_->attributes().dtype == wanted.dtype) return;
    const bool is_type = wanted.dtype == "f32" || wanted.dtype == "bf16";
    load(is(wanted) ? path_ : place_of(wanted, places), is_type ? wanted.dtype : "", device_);
}

bool LoadedModel::is_on(const std::string& device) const {
    const engine::ComputeDevice& here = model_->transformer().device();
    if (here.is_processor()) return device == "cpu" || (device == "auto" && device_ == "auto");
    return device == "auto" || engine::card_number(device) == engine::card_number(here.backend->name());
}

void LoadedModel::load(const fs::path& path, const std::string& dtype, const std::string& device) {
    const auto is_of_type = [&] {
        const auto& loaded = model_->transformer();
        return dtype.empty() || loaded.dtype() == engine::dtype_from_name(dtype, loaded.device());
    };
    if (model_ && path_ == path && is_on(device) && is_of_type()) return;
    progress_.go_on(EngineStatus::State::loading, path.filename().string());
    const std::string type = dtype.empty() ? "auto" : dtype;
    const engine::ComputeDevice on = engine::device_for(device, path, type, progress_);
    model_ = std::make_shared<const engine::Model>(
        engine::Model::open(path, engine::dtype_from_name(type, on), progress_, on));
    path_ = path;
    device_ = device;
    progress_.set_model(model_->attributes().name, path, model_->transformer().config().context_length,
                        engine::device_text(on));
    if (!on.is_processor()) tell_devices(progress_);
    tell_spectra();
    on_loaded_(model_);
}

double LoadedModel::spectra_seconds() const {
    return engine::spectra_seconds(model_->transformer().config(), model_->fingerprint());
}

void LoadedModel::tell_spectra() {
    if (model_) progress_.set_spectra_seconds(spectra_seconds());
}

}  // namespace kvscope::gui
