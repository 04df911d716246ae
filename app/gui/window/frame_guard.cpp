#include "app/gui/window/frame_guard.h"

#include <fmt/format.h>

#include "app/gui/window/imgui_error_recovery.h"

namespace kvscope::gui {

void FrameGuard::attempt(const char* part, const std::function<void()>& draw) {
    const DrawingStacks before;
    try {
        return draw();
    } catch (const std::exception& error) {
        before.restore();
        const std::string failure = fmt::format("{}: {}", part, error.what());
        if (told_.insert(failure).second) notices_.add(failure, true);
    }
}

}  // namespace kvscope::gui
