#pragma once

#include <cstdint>

#include "app/gui/session/session.h"

namespace kvscope::gui {

/// The token or the range of tokens that the inspector shows, and the run.
struct TokenQuestion {
    RunKey run;
    int64_t token = -1;  ///< −1: nothing to show
    bool is_hover = false;
    int64_t last_token = -1;  ///< end of the selected range that starts at `token`
    int64_t n_tokens() const { return last_token - token + 1; }
};

/// Returns the selected or else the hovered token, in the selected or else the first shown run.
TokenQuestion token_question(const Session& session);

}  // namespace kvscope::gui
