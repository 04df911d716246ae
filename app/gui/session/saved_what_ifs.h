#pragma once

#include <functional>
#include <string>

#include "app/gui/session/session.h"

namespace kvscope::gui {

/// Computes the kept sets of saved what-ifs again and adds the what-ifs to the documents. Call once per frame. `notice`
/// receives the reason for each failure once.
void restore_what_ifs(Session& session, const std::function<void(const std::string&)>& notice);

}  // namespace kvscope::gui
