#pragma once

#include <optional>
#include <string>

#include "app/gui/session/session.h"

namespace kvscope::gui {

/// The field in which a person gives a run a label of their own (session/renaming.h).
class RenameDialog {
 public:
    /// Opens it in the next frame. Does nothing where the run cannot be renamed.
    void ask(const Session& session, const RunKey& run);
    /// Once a frame.
    void draw(Session& session);

 private:
    std::optional<RunKey> wanted_;
    RunKey run_;
    std::string label_;
    bool in_all_prompts_ = true;
};

}  // namespace kvscope::gui
