#pragma once

#include <cstdint>

#include "app/gui/session/session.h"

namespace kvscope::gui {

/// The run that the inspector shows, with one token or a range of tokens.
struct InspectedToken {
    RunKey run;
    int64_t token = -1;  ///< first token, or −1 if there is nothing to show
    bool is_hover = false;
    int64_t last_token = -1;  ///< end of the selected range that starts at `token`
    [[nodiscard]] int64_t n_tokens() const { return last_token - token + 1; }
};

/// Prefers the selected token to the hovered token, and the selected run to the first shown run.
[[nodiscard]] InspectedToken find_inspected_token(const Session& session);

}  // namespace kvscope::gui
