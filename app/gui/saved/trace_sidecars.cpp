#include "app/gui/saved/trace_sidecars.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "app/gui/session/annotations.h"
#include "app/gui/session/session_state.h"

namespace kvscope::gui {

void TraceSidecars::take_in(Document& document) {
    RememberedView& view = remembered_[document.id()];
    view.in_file = load_trace_display(document.path());
    if (!keeps_views_) return;
    view.by_default = trace_display_state(session_, document);
    restore_trace_display(session_, document, view.in_file);
    view.last = trace_display_state(session_, document);
}

std::vector<std::filesystem::path> TraceSidecars::take_in_new() {
    std::vector<std::filesystem::path> taken;
    for (const auto& document : session_.documents()) {
        if (remembered_.contains(document->id())) continue;
        take_in(*document);
        taken.push_back(document->path());
    }
    return taken;
}

void TraceSidecars::take_in_as_shown() {
    for (const auto& document : session_.documents()) {
        RememberedView& view = remembered_[document->id()];
        view.in_file = load_trace_display(document->path());
        view.last = trace_display_state(session_, *document);
    }
}

void TraceSidecars::save_annotations() {
    std::string failed;
    for (const auto& document : session_.documents()) {
        if (document->annotations_changed && !annotations_wait_) {
            try {
                gui::save_annotations(*document, remembered_[document->id()].in_file);
                document->annotations_changed = false;
            } catch (const std::exception& error) {
                failed = error.what();
                if (failed != failure_) notices_.add(failed, true);
                failure_ = failed;
            }
        }
        for (const auto& text : std::exchange(document->annotations_notices, {})) notices_.add(text, true);
    }
    annotations_wait_ = annotations_wait_ || !failed.empty();
    if (has_unsaved_annotations()) return;
    failure_.clear();
    annotations_wait_ = false;
    warned_until_.reset();
}

void TraceSidecars::save_views() {
    if (!keeps_views_) return;
    for (const auto& document : session_.documents()) {
        if (!document->file()->complete()) continue;
        RememberedView& view = remembered_[document->id()];
        nlohmann::json now = trace_display_state(session_, *document);
        if (now == view.last) continue;
        view.in_file = now == view.by_default ? nlohmann::json() : now;
        view.last = std::move(now);
        try {
            gui::save_annotations(*document, view.in_file);
        } catch (const std::exception& error) {
            spdlog::warn("{}", error.what());
        }
    }
}

bool TraceSidecars::may_leave() {
    const auto now = std::chrono::steady_clock::now();
    if (!has_unsaved_annotations() || (warned_until_ && now < *warned_until_)) return true;
    warned_until_ = now + warns_for_;
    notices_.add(fmt::format("{}. Fix the problem, or close again within {} seconds to discard the annotations",
                             failure_, warns_for_.count()),
                 true);
    return false;
}

bool TraceSidecars::has_unsaved_annotations() const {
    return std::ranges::any_of(session_.documents(),
                               [](const auto& document) { return document->annotations_changed; });
}

}  // namespace kvscope::gui
