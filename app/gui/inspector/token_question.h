#pragma once

#include <cstdint>

#include "app/gui/session/session.h"

namespace kvscope::gui {

/// What the inspector is asked: one token in one run.
struct TokenQuestion {
    RunKey run;
    int64_t token = -1;  ///< −1: nothing is asked
    bool is_hover = false;
};

/// The selected token, else the one under the mouse; in the selected run, else the first that is shown.
TokenQuestion token_question(const Session& session);

}  // namespace kvscope::gui
