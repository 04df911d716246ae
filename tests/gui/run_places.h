#pragma once

#include "app/gui/session/session.h"

namespace kvscope::gui::testing {

/// The run that is now at this position of a prompt.
[[nodiscard]] inline RunKey run_at(const Session& session, int document, int prompt, int run) {
    return session.document(document)->key_of(prompt, run);
}

}  // namespace kvscope::gui::testing
