#include "app/gui/run_label.h"

#include <imgui.h>

#include <vector>

namespace kvscope::gui {
namespace {

bool fits(const std::string& text, float width) { return ImGui::CalcTextSize(text.c_str()).x <= width; }

/// Where the characters of UTF-8 begin, and the end.
std::vector<size_t> character_starts(const std::string& text) {
    std::vector<size_t> starts;
    for (size_t i = 0; i < text.size(); ++i) {
        if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) starts.push_back(i);
    }
    starts.push_back(text.size());
    return starts;
}

}  // namespace

std::string label_that_fits(const RunLook& look, float width) {
    if (look.trace.empty() || fits(look.label, width)) return look.label;
    const std::vector<size_t> starts = character_starts(look.trace);
    for (size_t kept = starts.size() - 2; kept >= 2; --kept) {
        const size_t head = (kept + 1) / 2;
        const std::string shortened = look.trace.substr(0, starts[head]) + "…" +
                                      look.trace.substr(starts[starts.size() - 1 - (kept - head)]) + ": " + look.run;
        if (fits(shortened, width)) return shortened;
    }
    return look.run;
}

std::string widget_label_that_fits(const RunLook& look, float width) {
    const std::string shown = label_that_fits(look, width);
    return shown == look.label ? shown : shown + "###" + look.label;
}

}  // namespace kvscope::gui
