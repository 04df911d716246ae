#pragma once

#include <cstdint>
#include <memory>

#include "app/gui/session/selection.h"
#include "app/gui/tokens/prompt_lines.h"

namespace kvscope::gui {

/// Keeps what is being read where it is seen when a prompt is broken into other lines, as in columns of another width.
class ReadingPlace {
 public:
    /// In the scrolled window, each frame. @param of whose prompt it is @param line_height, room pixels: of a line, of
    /// the lines in view @param token stays where it is if it is in view; else the first in view does
    void keep(const std::shared_ptr<const PromptLines>& lines, const RunKey& of, float line_height, float room,
              int64_t token);

 private:
    std::shared_ptr<const PromptLines> lines_;
    RunKey of_;
};

}  // namespace kvscope::gui
