#pragma once

#include <cstdint>
#include <memory>

#include "app/gui/session/run_selection.h"
#include "app/gui/tokens/prompt_lines.h"

namespace kvscope::gui {

/// Keeps the visible text in view when a prompt is broken into new lines, e.g. after a column's width changed.
class ReadingPlace {
 public:
    /// Forgets the kept position. Call when the user goes to another position.
    void let_go() { frames_back_ = 0; }
    /// Adjusts the scroll position in each frame. `token` keeps its position if visible, else the first visible token
    /// does. @param of run that is shown @param room visible height, pixels
    void keep(const std::shared_ptr<const PromptLines>& lines, const RunKey& of, float line_height, float room,
              int64_t token);

 private:
    /// Whether the view is being restored, e.g. after another was maximized. This takes a few frames.
    bool is_coming_back(const PromptLines& lines, float line_height, float room, int64_t token);

    std::shared_ptr<const PromptLines> lines_;
    RunKey of_;
    int frame_ = -1;       ///< frame of the last call
    int frames_back_ = 0;  ///< remaining frames until the view is restored
    int64_t first_ = -1;   ///< first visible token at the last call
    float token_at_ = -1;  ///< distance of the selected token from the upper edge; negative: not visible
};

}  // namespace kvscope::gui
