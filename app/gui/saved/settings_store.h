#pragma once

#include <string>

#include "app/gui/session/settings.h"
#include "app/gui/window/notices.h"

namespace kvscope::gui {

/// The user's settings, read at the start and written after changes.
class SettingsStore {
 public:
    /// If `is_kept` is false, uses the defaults and neither reads nor writes a file.
    explicit SettingsStore(bool is_kept);

    [[nodiscard]] bool is_kept() const { return is_kept_; }
    [[nodiscard]] Settings& values() { return values_; }
    [[nodiscard]] const Settings& values() const { return values_; }

    [[nodiscard]] bool has_new_recent() const;
    /// Logs each error once and shows a notice if the user must act.
    void save(Notices& notices);

 private:
    bool is_kept_;
    Settings values_;
    Settings saved_;
    Settings before_;      ///< values at the last read or write
    std::string failure_;  ///< last logged error
};

}  // namespace kvscope::gui
