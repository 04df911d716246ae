#pragma once

#include <functional>
#include <string>

#include "app/gui/session/session.h"

namespace kvscope::gui {

/// Computes saved what-ifs again and adds them to the documents. Call once per frame. `notice` receives failures.
void restore_what_ifs(Session& session, const std::function<void(const std::string&)>& notice);

}  // namespace kvscope::gui
