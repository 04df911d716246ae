#include "app/gui/view/run_label.h"

#include <imgui.h>

#include <algorithm>
#include <filesystem>
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

/// The text with as much of its beginning and end as `fits`, two characters at least; empty where that does not do.
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

std::string run_that_fits(const std::string& label, float width) {
    if (fits(label, width)) return label;
    const size_t budget = std::min(label.rfind(" @ "), label.size());
    const std::string end = label.substr(budget);
    const std::string shortened =
        without_middle(label.substr(0, budget), [&](const std::string& policy) { return fits(policy + end, width); });
    return shortened.empty() ? label : shortened + end;
}

std::string label_that_fits(const RunLook& look, float width) {
    if (look.trace.empty()) return run_that_fits(look.label, width);
    if (fits(look.label, width)) return look.label;
    const std::filesystem::path name(look.trace);
    const std::string folder = name.parent_path().string();
    const std::string stem = (name.parent_path() / name.stem()).string();
    const auto with_run = [&](const std::string& trace) { return trace + ": " + look.run; };
    if (fits(with_run(stem), width)) return with_run(stem);
    if (!folder.empty() && fits(with_run(folder + "/…"), width)) return with_run(folder + "/…");
    const std::string& telling = folder.empty() ? stem : folder;
    const std::string shortened =
        without_middle(telling, [&](const std::string& trace) { return fits(with_run(trace), width); });
    return shortened.empty() ? run_that_fits(look.run, width) : with_run(shortened);
}

std::string label_in_full(const RunLook& look) {
    return look.recorded.empty() ? look.label : look.label + "\nin the trace: " + look.recorded;
}

}  // namespace kvscope::gui
