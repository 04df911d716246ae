#include "app/gui/engine/loaded_model.h"

#include <fmt/format.h>

#include <stdexcept>

#include "app/program/paths.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/common/error.h"
#include "engine/model/device.h"
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

void LoadedModel::choose(fs::path path, const std::string& dtype) {
    if (path.empty()) path = refused_;
    if (path.empty()) path = model_ ? path_ : program::default_model();
    try {
        refused_ = path;
        load(path, dtype);
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
    load(is(wanted) ? path_ : place_of(wanted, places), is_type ? wanted.dtype : "auto");
}

void LoadedModel::load(const fs::path& path, const std::string& dtype) {
    if (model_ && path_ == path && (dtype == "auto" || model_->attributes().dtype == dtype)) return;
    progress_.go_on(EngineStatus::State::loading, path.filename().string());
    model_ =
        std::make_shared<const engine::Model>(engine::Model::open(path, engine::dtype_from_name(dtype), progress_));
    path_ = path;
    progress_.set_model(model_->attributes().name, path, model_->transformer().config().context_length);
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
