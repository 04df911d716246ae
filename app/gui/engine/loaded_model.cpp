#include "app/gui/engine/loaded_model.h"

#include <fmt/format.h>

#include <stdexcept>

#include "app/program/input_files.h"
#include "common/bounded_json.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/common/engine_error.h"
#include "engine/common/memory.h"
#include "engine/model/device_selection.h"
#include "engine/options/device_name.h"
#include "engine/projection_spectra.h"
#include "trace/spectra_cache.h"

namespace kvscope::gui {

namespace fs = std::filesystem;

fs::path find_model_path(const trace::ModelAttributes& wanted, std::vector<fs::path> places) {
    try {
        places.push_back(program::default_model());
    } catch (const std::exception&) {
        // There is no default model, so search only the other places.
    }
    for (const auto& place : places) {
        try {
            if (checkpoint::open_checkpoint(place)->fingerprint() == wanted.fingerprint) return place;
        } catch (const std::exception&) {
            continue;  // the model was moved or is damaged
        }
    }
    throw std::runtime_error(fmt::format(
        "the trace was made with {}, which is neither loaded, nor the default model, nor a recent model: load "
        "that model first",
        wanted.name));
}

bool is_small_model(const fs::path& path) {
    constexpr uintmax_t small_model_bytes = 4'000'000'000;
    std::error_code error;
    if (!fs::is_directory(path, error)) return fs::file_size(path, error) <= small_model_bytes;
    uintmax_t bytes = 0;
    for (auto at = fs::directory_iterator(path, error); !error && at != fs::directory_iterator(); at.increment(error)) {
        std::error_code of_entry;
        if (at->is_regular_file(of_entry)) bytes += at->file_size(of_entry);
    }
    return bytes <= small_model_bytes;
}

void report_devices(JobProgress& progress) { progress.set_devices(engine::devices(), engine::why_no_card()); }

void LoadedModel::choose(fs::path path, const engine::RunOptions* asked) {
    if (path.empty()) path = refused_;
    if (path.empty()) path = model_ ? path_ : program::default_model();
    try {
        refused_ = path;
        const std::string device = asked ? asked->device : chosen_device_;
        load(path, asked ? asked->dtype : "", device);
        chosen_device_ = device;
        refused_.clear();
        progress_.set_model_error("", false);
    } catch (const Stopped&) {
        progress_.set_model_error(path.filename().string() + " was not loaded, because loading was canceled", false);
        throw;
    } catch (const std::exception& error) {
        // The cause may be the run's device or number type, so a failed run alone does not mark the model as refused.
        progress_.set_model_error(error.what(), !asked || progress_.status().is_model_refused);
        throw;
    }
}

void LoadedModel::need(const trace::Reader& trace, const std::vector<fs::path>& places) {
    const trace::ModelAttributes& wanted = trace.model();
    const fs::path path = is(wanted) ? path_ : find_model_path(wanted, places);
    const std::string dtype = wanted.dtype == "f32" || wanted.dtype == "bf16" ? wanted.dtype : "";
    const std::string device = engine::recorded_device(bounded_json::parse_or_discard(trace.recipe_json()));
    try {
        load(path, dtype, device);
    } catch (const Stopped&) {
        throw;
    } catch (const std::exception& error) {
        if (device == "cpu") throw;
        load(path, dtype, "cpu");
        if (warned_.insert(trace.path()).second)
            on_warning_(fmt::format("{} was made on {}. The CPU is used instead and rounds differently: {}",
                                    trace.path().filename().string(), device, error.what()));
    }
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
    const engine::ComputeDevice on = engine::open_device_for_model(device, path, type, progress_);
    const auto open = [&] {
        return std::make_shared<const engine::Model>(
            engine::Model::open(path, engine::dtype_from_name(type, on), progress_, on));
    };
    try {
        model_ = open();
    } catch (const engine::RunError&) {
        if (!model_) throw;
        model_.reset();  // there may be no memory for two models
        engine::reset_peak_memory();
        model_ = open();
    }
    path_ = path;
    device_ = device;
    progress_.set_model(model_->attributes().name, path, model_->transformer().config().context_length,
                        engine::device_text(on));
    if (!on.is_processor()) report_devices(progress_);
    tell_spectra();
    on_loaded_(model_);
}

void LoadedModel::compute_spectra(const trace::ModelAttributes& wanted, const std::vector<fs::path>& places) {
    trace::ModelRecord record;
    if (is(wanted)) {
        engine::add_projection_spectra(model_->checkpoint(), wanted.fingerprint, record, progress_);
    } else {
        const auto checkpoint = checkpoint::open_checkpoint(find_model_path(wanted, places));
        progress_.go_on(EngineStatus::State::running, fmt::format("spectra of {}", wanted.name));
        engine::add_projection_spectra(*checkpoint, wanted.fingerprint, record, progress_);
    }
    if (!trace::has_cached_spectra(wanted))
        throw std::runtime_error(
            fmt::format("the spectra of {} cannot be saved in the cache folder (~/.cache/kvscope/spectra or "
                        "$XDG_CACHE_HOME/kvscope/spectra): make it writable",
                        wanted.name));
    tell_spectra();
}

double LoadedModel::spectra_seconds() const {
    return engine::estimate_spectra_seconds(model_->transformer().config(), model_->fingerprint());
}

void LoadedModel::tell_spectra() {
    if (model_) progress_.set_spectra_seconds(spectra_seconds());
}

}  // namespace kvscope::gui
