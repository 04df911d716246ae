#pragma once

#include <functional>
#include <string>

#include "app/gui/session/session.h"

namespace kvscope::gui {

/// Computes the kept sets of saved what-ifs again from the traces alone, and adds the what-ifs to the documents. A
/// what-if that cannot be computed stays saved. Call once per frame.
/// @param notice called once with the reason for each failure
void restore_what_ifs(Session& session, const std::function<void(const std::string&)>& notice);

}  // namespace kvscope::gui
