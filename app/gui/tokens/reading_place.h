#pragma once

#include <cstdint>
#include <memory>

#include "app/gui/session/selection.h"
#include "app/gui/tokens/prompt_lines.h"

namespace kvscope::gui {

/// Keeps the visible text in view when the lines of a prompt change, e.g. with the width of a column.
class ReadingPlace {
 public:
    /// Forgets the kept position. Call when the user moves to another position.
    void let_go() { frames_back_ = 0; }
    /// Adjusts the scroll position. Call in each frame. `token`, or the first visible token if `token` is not visible,
    /// keeps its place on the screen. @param of run whose text is shown @param room visible height in pixels
    void keep(const std::shared_ptr<const PromptLines>& lines, const RunKey& of, float line_height, float room,
              int64_t token);

 private:
    [[nodiscard]] bool is_coming_back(const PromptLines& lines, float line_height, float room, int64_t token);

    std::shared_ptr<const PromptLines> lines_;
    RunKey of_;
    int frame_ = -1;       ///< number of the frame of the last call
    int frames_back_ = 0;  ///< remaining frames until the view is restored
    int64_t first_ = -1;   ///< first visible token at the last call
    float token_at_ = -1;  ///< distance of the selected token from the upper edge; negative if the token is not visible
};

}  // namespace kvscope::gui
