#include "app/gui/saved/settings_store.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <utility>

namespace kvscope::gui {

SettingsStore::SettingsStore(bool is_kept)
    : is_kept_(is_kept), values_(is_kept ? load_settings(settings_file()) : Settings{}), before_(values_) {}

bool SettingsStore::has_new_recent() const {
    return is_kept_ &&
           (values_.recent_traces != before_.recent_traces || values_.recent_models != before_.recent_models);
}

void SettingsStore::save(Notices& notices) {
    if (!is_kept_ || values_ == saved_) return;
    try {
        for (const auto& text : save_settings(values_, settings_file(), &before_)) notices.add(text);
        values_.problem.clear();
        saved_ = before_ = values_;
    } catch (const std::exception& error) {
        const std::string failure = fmt::format("the layout cannot be saved: {}", error.what());
        if (std::exchange(failure_, failure) != failure) spdlog::warn("{}", failure);
    }
}

}  // namespace kvscope::gui
