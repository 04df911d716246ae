#pragma once

#include <string>

#include "app/gui/session/settings.h"
#include "app/gui/shell/notices.h"

namespace kvscope::gui {

/// The person's settings: read when the window opens, written where they have changed.
class SettingsStore {
 public:
    /// @param is_kept else neither read nor written: the window begins with defaults
    explicit SettingsStore(bool is_kept);

    bool is_kept() const { return is_kept_; }
    Settings& values() { return values_; }
    const Settings& values() const { return values_; }

    /// Whether a trace or a model was opened since they were read or written.
    bool has_new_recent() const;
    /// What goes wrong is logged once; what a person is to be told becomes a notice.
    void save(Notices& notices);

 private:
    bool is_kept_;
    Settings values_;
    Settings saved_;
    Settings before_;      ///< as they were read or written last
    std::string failure_;  ///< logged last
};

}  // namespace kvscope::gui
