#pragma once

#include <cstdint>

#include "app/gui/session/session.h"

namespace kvscope::gui {

/// What the inspector is asked: one token in one run, and where several are selected, what runs keep of all of them.
struct TokenQuestion {
    RunKey run;
    int64_t token = -1;  ///< −1: nothing is asked
    bool is_hover = false;
    int64_t last_token = -1;  ///< of those that are selected, `token` the first
    int64_t n_tokens() const { return last_token - token + 1; }
};

/// The selected token, else the one under the mouse; in the selected run, else the first that is shown.
TokenQuestion token_question(const Session& session);

}  // namespace kvscope::gui
