#pragma once

namespace kvscope::gui {

bool has_input();

}  // namespace kvscope::gui
