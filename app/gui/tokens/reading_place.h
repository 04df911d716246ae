#pragma once

#include <cstdint>
#include <memory>

#include "app/gui/session/run_selection.h"
#include "app/gui/tokens/prompt_lines.h"

namespace kvscope::gui {

/// Keeps what is being read where it is seen when a prompt is broken into other lines, as in columns of another width.
class ReadingPlace {
 public:
    /// Where somebody goes to another place, that is the one to be kept.
    void let_go() { frames_back_ = 0; }
    /// In the scrolled window, each frame. @param of whose prompt it is @param line_height, room pixels: of a line, of
    /// the lines in view @param token stays where it is if it is in view; else the first in view does
    void keep(const std::shared_ptr<const PromptLines>& lines, const RunKey& of, float line_height, float room,
              int64_t token);

 private:
    /// A view that comes back, as after another one was maximised, gets its place over some frames.
    bool is_coming_back(const PromptLines& lines, float line_height, float room, int64_t token);

    std::shared_ptr<const PromptLines> lines_;
    RunKey of_;
    int frame_ = -1;       ///< in which it was called last
    int frames_back_ = 0;  ///< that are left until the view has its place again
    int64_t first_ = -1;   ///< token in view, while it had
    float token_at_ = -1;  ///< where the selected one stood below the upper edge; below 0: not in view
};

}  // namespace kvscope::gui
