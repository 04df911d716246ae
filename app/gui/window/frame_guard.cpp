#include "app/gui/window/frame_guard.h"

#include <fmt/format.h>
#include <implot.h>
#include <implot_internal.h>

namespace kvscope::gui {

namespace {

/// While an object of this class exists, Dear ImGui closes open items without reporting an error.
class Quietly {
 public:
    Quietly() : io_(ImGui::GetIO()), before_(io_), callback_(ImGui::GetCurrentContext()->ErrorCallback) {
        io_.ConfigErrorRecoveryEnableAssert = false;
        io_.ConfigErrorRecoveryEnableDebugLog = false;
        io_.ConfigErrorRecoveryEnableTooltip = false;
        ImGui::GetCurrentContext()->ErrorCallback = nullptr;
    }
    Quietly(const Quietly&) = delete;
    Quietly& operator=(const Quietly&) = delete;
    ~Quietly() {
        io_.ConfigErrorRecoveryEnableAssert = before_.asserts;
        io_.ConfigErrorRecoveryEnableDebugLog = before_.logs;
        io_.ConfigErrorRecoveryEnableTooltip = before_.shows_tooltip;
        ImGui::GetCurrentContext()->ErrorCallback = callback_;
    }

 private:
    struct Before {
        bool asserts, logs, shows_tooltip;
        explicit Before(const ImGuiIO& io)
            : asserts(io.ConfigErrorRecoveryEnableAssert),
              logs(io.ConfigErrorRecoveryEnableDebugLog),
              shows_tooltip(io.ConfigErrorRecoveryEnableTooltip) {}
    };
    ImGuiIO& io_;
    Before before_;
    ImGuiErrorCallback callback_;
};

}  // namespace

DrawingStacks::DrawingStacks()
    // CurrentWindow is valid outside all windows, too. Asking for the fallback window by name would show that window.
    : list_(ImGui::GetCurrentContext()->CurrentWindow->DrawList),
      n_clips_(list_->_ClipRectStack.Size),
      n_textures_(list_->_TextureStack.Size) {
    ImGui::ErrorRecoveryStoreState(&sizes_);
}

void DrawingStacks::restore() const {
    const Quietly quietly;
    ImGui::ErrorRecoveryTryToRecoverState(&sizes_);
    if (list_->_Splitter._Count > 1) list_->ChannelsMerge();
    while (list_->_ClipRectStack.Size > n_clips_) list_->PopClipRect();
    while (list_->_TextureStack.Size > n_textures_) list_->PopTexture();
    ImGui::GetCurrentContext()->CurrentWindow->ClipRect = list_->_ClipRectStack.back();
    // ImPlot has its own stacks. The plot is not ended, because EndPlot would draw an incomplete plot.
    ImPlotContext& plots = *ImPlot::GetCurrentContext();
    if (plots.CurrentPlot) ImPlot::ResetCtxForNextPlot(&plots);
    if (plots.CurrentSubplot) ImPlot::ResetCtxForNextSubplot(&plots);
    if (plots.CurrentItems) plots.CurrentItems = nullptr;
}

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
