#include "app/gui/view/run_label.h"

#include <imgui.h>

#include <algorithm>
#include <filesystem>
#include <vector>

namespace kvscope::gui {
namespace {

bool fits(const std::string& text, float width) { return ImGui::CalcTextSize(text.c_str()).x <= width; }

std::vector<size_t> character_starts(const std::string& text) {
    std::vector<size_t> starts;
    for (size_t i = 0; i < text.size(); ++i) {
        if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) starts.push_back(i);
    }
    starts.push_back(text.size());
    return starts;
}

/// Shortens the middle of a text until `fits` returns true. Returns an empty text if two characters do not fit.
template <class Fits>
std::string without_middle(const std::string& text, const Fits& fits) {
    const std::vector<size_t> starts = character_starts(text);
    for (size_t kept = starts.size() - 1; kept >= 2; --kept) {
        const size_t head = (kept + 1) / 2;
        const std::string tail = text.substr(starts[starts.size() - 1 - (kept - head)]);
        std::string shortened = kept + 1 == starts.size() ? text : text.substr(0, starts[head]) + "…" + tail;
        if (fits(shortened)) return shortened;
    }
    return "";
}

}  // namespace

std::string shorten_run_label(const std::string& label, float width) {
    if (fits(label, width)) return label;
    const size_t budget = std::min(label.rfind(" @ "), label.size());
    const std::string end = label.substr(budget);
    const std::string shortened =
        without_middle(label.substr(0, budget), [&](const std::string& policy) { return fits(policy + end, width); });
    return shortened.empty() ? label : shortened + end;
}

std::string label_that_fits(const RunLook& look, float width) {
    if (look.trace.empty()) return shorten_run_label(look.label, width);
    const std::string badge = look.badge + " ";
    if (fits(badge + look.label, width)) return badge + look.label;
    const std::filesystem::path name(look.trace);
    const std::string without_extension = (name.parent_path() / name.stem()).string() + ": " + look.run;
    if (fits(badge + without_extension, width)) return badge + without_extension;
    if (fits(badge + look.run, width)) return badge + look.run;
    if (fits(look.run, width)) return look.run;
    const std::string shortened = badge + shorten_run_label(look.run, width - ImGui::CalcTextSize(badge.c_str()).x);
    return fits(shortened, width) ? shortened : shorten_run_label(look.run, width);
}

std::string text_that_fits(const std::string& text, float width) {
    if (fits(text, width)) return text;
    const std::string shortened =
        without_middle(text, [&](const std::string& shorter) { return fits(shorter, width); });
    return shortened.empty() ? text : shortened;
}

std::string full_label_for_tooltip(const RunLook& look) {
    return look.recorded.empty() ? look.label : look.label + "\nin the trace: " + look.recorded;
}

}  // namespace kvscope::gui
