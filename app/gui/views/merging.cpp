#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <optional>

#include "analysis/measures/entry_cardinality.h"
#include "analysis/tables/table_format.h"
#include "app/gui/drawing/shaped_text.h"
#include "app/gui/figure/token_maps_view.h"
#include "app/gui/tokens/token_retention_counts.h"
#include "app/gui/view/widgets.h"
#include "app/gui/view_data/measure_definitions.h"
#include "app/gui/view_data/prompt_text.h"

namespace kvscope::gui {
namespace {

/// Returns whether a run merges tokens, or nullopt until a job has read the file.
std::optional<bool> merges(const Session& session, const RunKey& key) {
    static const TaskSlot<bool> slot;
    const auto answer =
        session.tasks.ask(slot, key.text(), session.stamp(key), [at = session.at(key)](const std::stop_token& stop) {
            return at.reader->with_stop(stop).has(at.place(), trace::schema::run::merged_token_entry);
        });
    if (answer.value) return *answer.value;
    return answer.current ? std::optional(false) : std::nullopt;  // the file could not be read
}

/// Returns the entry with this token in a layer, or nullopt for a token that is alone in its entry or dropped.
std::optional<analysis::EntryTokens> entry_at(const trace::Kept& kept, size_t n_tokens, int layer, int64_t token) {
    const auto entries = analysis::list_merged_entries(kept, static_cast<size_t>(layer), 0, n_tokens);
    const auto found = std::ranges::find_if(entries, [&](const analysis::EntryTokens& entry) {
        return int64_t{entry.first} <= token && token <= int64_t{entry.last};
    });
    if (found == entries.end()) return std::nullopt;
    return *found;
}

size_t n_tokens_of(const Session& session, const RunKey& run) {
    return static_cast<size_t>(session.document(run)->reader()->prompt(run.prompt).visible_tokens());
}

class MergingView : public TokenMapsView {
 public:
    MergingView() : TokenMapsView("merging") {}

    std::vector<std::pair<std::string, std::string>> help() const override {
        return {{"move the mouse", "show the tokens of the entry under the mouse"},
                {"click, Shift-click", "select a token and layer; extend the tokens"},
                {"double-click", "select the tokens of the entry"},
                {"right-click", "copy, export, open another view"},
                {"drag, wheel, Ctrl-drag", "pan, zoom, zoom into a box"},
                {"F", "the whole prompt"}};
    }

 private:
    std::vector<RunKey> shown_runs(const Session& session) const override {
        std::vector<RunKey> runs = session.visible_runs();
        std::erase_if(runs, [&](const RunKey& key) { return !merges(session, key).value_or(false); });
        return runs;
    }

    std::string why_no_runs(const Session& session) const override {
        if (session.documents().empty()) return "Open a trace to see which tokens were merged.";
        const auto shown = session.visible_runs();
        const bool are_known =
            std::ranges::all_of(shown, [&](const RunKey& key) { return merges(session, key).has_value(); });
        return are_known ? "No visible run merges tokens. The policies kvslimmer and asymkv do."
                         : "reading merged entries …";
    }

    void draw_header(const Context&) override {
        ImGui::TextUnformatted("tokens →  layers ↓");
        ImGui::SameLine(0, 2 * ImGui::GetFontSize());
        ImGui::TextDisabled("every second merged entry is paler");
    }

    void enter(Session& session, const RunKey& run, int layer, int64_t token) override {
        const auto counts = token_retention_counts(session, run).value;
        const auto entry = counts ? entry_at(*counts->kept, n_tokens_of(session, run), layer, token) : std::nullopt;
        if (!entry) return;
        Cursor next = session.selection.cursor_at(run);
        next.layer = layer;
        next.first_token = entry->first;
        next.last_token = entry->last;
        session.selection.set(next);
    }

    void draw_tooltip(Context& context, const RunKey& run, int layer, int64_t token) const override {
        const auto prompt = prompt_text(context.session, *context.session.document(run));
        const auto counts = token_retention_counts(context.session, run).value;
        if (!counts) return ImGui::TextUnformatted("…");
        const trace::Kept& kept = *counts->kept;
        const auto entry = entry_at(kept, n_tokens_of(context.session, run), layer, token);
        if (!entry) {
            const bool is_held = kept.fate(static_cast<size_t>(layer), 0, static_cast<uint32_t>(token)).is_held();
            ImGui::Text("layer %d, token %s: %s", layer, analysis::format_count(token).c_str(),
                        is_held ? "its own entry" : "dropped");
            return;
        }
        constexpr uint32_t most = 24;
        std::string text;
        for (uint32_t t = entry->first; prompt && t <= entry->last && t < entry->first + most; ++t)
            if (t < prompt->shown.size()) text += prompt->shown[t];
        if (entry->last - entry->first >= most) text += " …";
        ImGui::PushTextWrapPos(30 * ImGui::GetFontSize());
        ImGui::PushFont(context.fonts.mono, 0);
        text_item(text.empty() ? "…" : text);
        ImGui::PopFont();
        plain_text(fmt::format("layer {}: tokens {} to {} are one entry of {:g}", layer,
                               analysis::format_count(entry->first), analysis::format_count(entry->last),
                               entry->cardinality));
        ImGui::PopTextWrapPos();
        ImGui::TextDisabled("%s", measure_definition("merging"));
    }
};

}  // namespace

ViewKind merging_view() {
    return {"merging",    "Merged entries", "Tokens that share an entry in a layer, for each run that merges tokens",
            Dock::center, Topic::tokens,    make_view<MergingView>,
            R"(
...###....####..
..#...#..#....#.
.#.....##.....#.
.#.....##......#
.9.4.6.8.3.7.5.9
................
.**..*****..***.
................)"};
}

}  // namespace kvscope::gui
