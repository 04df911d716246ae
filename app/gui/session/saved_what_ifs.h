#pragma once

#include <functional>
#include <string>

#include "app/gui/session/session.h"

namespace kvscope::gui {

/// Once a frame: makes the selections of what-ifs again that are saved beside the open traces, from the traces alone,
/// and adds them to the runs as they come. What cannot be made so stays saved.
/// @param notice called with the reason, once each
void restore_what_ifs(Session& session, const std::function<void(const std::string&)>& notice);

}  // namespace kvscope::gui
