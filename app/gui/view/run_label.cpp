#include "app/gui/view/run_label.h"

#include <imgui.h>

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

}  // namespace

std::string label_that_fits(const RunLook& look, float width) {
    if (look.trace.empty() || fits(look.label, width)) return look.label;
    const std::filesystem::path name(look.trace);
    const std::string folder = name.parent_path().string();
    const std::string stem = (name.parent_path() / name.stem()).string();
    const auto with_run = [&](const std::string& trace) { return trace + ": " + look.run; };
    if (fits(with_run(stem), width)) return with_run(stem);
    if (!folder.empty() && fits(with_run(folder + "/…"), width)) return with_run(folder + "/…");
    const std::string& telling = folder.empty() ? stem : folder;
    const std::vector<size_t> starts = character_starts(telling);
    for (size_t kept = starts.size() - 1; kept >= 2; --kept) {
        const size_t head = (kept + 1) / 2;
        const std::string tail = telling.substr(starts[starts.size() - 1 - (kept - head)]);
        const std::string shortened =
            with_run(kept + 1 == starts.size() ? telling : telling.substr(0, starts[head]) + "…" + tail);
        if (fits(shortened, width)) return shortened;
    }
    return look.run;
}

std::string label_in_full(const RunLook& look) {
    return look.recorded.empty() ? look.label : look.label + "\nin the trace: " + look.recorded;
}

}  // namespace kvscope::gui
