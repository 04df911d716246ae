#pragma once

#include <optional>
#include <string>

#include "app/gui/session/session.h"

namespace kvscope::gui {

/// Dialog to change the label of a run (session/renaming.h).
class RenameDialog {
 public:
    /// Opens the dialog in the next frame. Does nothing if the run cannot be renamed.
    void ask(const Session& session, const RunKey& run);
    void draw(Session& session);

 private:
    std::optional<RunKey> wanted_;
    RunKey run_;
    std::string label_;
    bool in_all_prompts_ = true;
};

}  // namespace kvscope::gui
