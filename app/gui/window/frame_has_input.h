#pragma once

namespace kvscope::gui {

[[nodiscard]] bool has_input();

}  // namespace kvscope::gui
