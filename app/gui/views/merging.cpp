#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "analysis/drawing/ticks.h"
#include "analysis/measures/entry_cardinality.h"
#include "analysis/tables/number_text.h"
#include "analysis/tables/table_format.h"
#include "app/gui/drawing/shaped_text.h"
#include "app/gui/drawing/theme_adapted_colors.h"
#include "app/gui/figure/figure_menu.h"
#include "app/gui/tokens/map_key.h"
#include "app/gui/tokens/token_map.h"
#include "app/gui/view/trace_badge.h"
#include "app/gui/view/view.h"
#include "app/gui/view_data/measure_definitions.h"
#include "app/gui/view_data/prompt_text.h"

namespace kvscope::gui {
namespace {

/// A run's map of entry sizes with the limits of its colors.
struct EntrySizes {
    std::shared_ptr<const Pyramid> pyramid;
    std::shared_ptr<const trace::Kept> kept;
    size_t n_tokens = 0;
    float largest = 1;
};

EntrySizes read_sizes(const trace::Reader& reader, int prompt, int run) {
    EntrySizes found;
    found.kept = reader.kept(prompt, run);
    const auto& kept = found.kept;
    const size_t n = found.n_tokens = static_cast<size_t>(reader.prompt(prompt).visible_tokens());
    auto sizes = analysis::cardinalities_in_alternating_shades(*kept, n);
    for (const float size : sizes)
        if (std::isfinite(size)) found.largest = std::max(found.largest, size);
    found.pyramid = std::make_shared<const Pyramid>(make_pyramid(std::move(sizes), kept->n_layers, n, Reduce::maximum));
    return found;
}

class MergingView : public View {
 public:
    void draw(Context& context) override {
        Session& session = context.session;
        if (fit_) session.token_axis.show_everything();
        fit_ = false;
        const std::vector<RunKey> runs = runs_that_merge(session);
        if (runs.empty()) {
            draw_nothing(context, why_none(session));
            return;
        }
        const float em = ImGui::GetFontSize();
        const float axis = em + 3 * context.scale;
        const float room = ImGui::GetContentRegionAvail().y - axis - 2 * ImGui::GetStyle().ItemSpacing.y -
                           ImGui::GetTextLineHeightWithSpacing();
        draw_scale(context);
        const auto n_at_once = std::clamp<size_t>(static_cast<size_t>(room / (4.2f * em)), 1, runs.size());
        const float each = std::floor(std::max(room / static_cast<float>(n_at_once), 4.2f * em));
        DrawnTokenMap place;
        ImGui::BeginChild("maps", {0, each * static_cast<float>(n_at_once)});
        for (const RunKey& key : runs) {
            const DrawnTokenMap drawn = draw_run(context, key, each);
            if (drawn.is_visible()) place = drawn;
        }
        ImGui::EndChild();
        if (place.is_visible())
            draw_token_axis(context, place,
                            session.document(runs.front())->reader()->prompt(runs.front().prompt).visible_tokens());
        maps_.drop_unused();
        draw_figure_menu(context, *this, "merging", figure(session));
    }

    std::optional<FigureRequest> figure(const Session& session) const override {
        const Document* focus = session.focus();
        if (!focus) return std::nullopt;
        FigureRequest request{focus->id(), "merging", {}};
        request.options.prompt = focus->prompt;
        for (const RunKey& key : runs_that_merge(session))
            if (key.document == focus->id()) request.runs.push_back(key.run);
        return request;
    }

    std::vector<std::pair<std::string, std::string>> help() const override {
        return {{"move the mouse", "show the tokens of the entry under the mouse"},
                {"click, Shift-click", "select a token and layer; extend the tokens"},
                {"double-click", "select the tokens of the entry"},
                {"right-click", "copy, export, open another view"},
                {"drag, wheel, Ctrl-drag", "pan, zoom, zoom into a box"},
                {"F", "the whole prompt"}};
    }

    void fit() override { fit_ = true; }

 private:
    /// Returns whether a run merges tokens, or nullopt until a job has read the file.
    static std::optional<bool> merges(const Session& session, const RunKey& key) {
        static const TaskSlot<bool> slot;
        const auto answer = session.tasks.ask(
            slot, key.text(), session.stamp(key), [at = session.at(key)](const std::stop_token& stop) {
                return at.reader->with_stop(stop).has(at.place(), trace::schema::run::merged_token_entry);
            });
        if (answer.value) return *answer.value;
        return answer.current ? std::optional(false) : std::nullopt;  // the file could not be read
    }

    static std::vector<RunKey> runs_that_merge(const Session& session) {
        std::vector<RunKey> runs = session.visible_runs();
        std::erase_if(runs, [&](const RunKey& key) { return !merges(session, key).value_or(false); });
        return runs;
    }

    static std::string why_none(const Session& session) {
        if (session.documents().empty()) return "Open a trace to see which tokens were merged.";
        const auto shown = session.visible_runs();
        const bool are_known = std::all_of(shown.begin(), shown.end(),
                                           [&](const RunKey& key) { return merges(session, key).has_value(); });
        return are_known ? "No visible run merges tokens. The policies kvslimmer and asymkv do."
                         : "reading merged entries …";
    }

    MapColors colors_for(const Context& context) const {
        MapColors colors = count_colors(context.theme, 0.8f, std::max(largest_, 2.0f));
        colors.logarithmic = true;
        return colors;
    }

    void draw_scale(const Context& context) const {
        ImGui::TextUnformatted("tokens →  layers ↓");
        ImGui::SameLine(0, 2 * ImGui::GetFontSize());
        const MapColors colors = colors_for(context);
        const auto patch = [&](ImU32 color, const std::string& label) {
            draw_color_patch(context.theme, color, label);
        };
        patch(packed(context.theme.ground), "dropped");
        for (const double size : analysis::choose_legend_sizes(double{largest_}))
            patch(map_value_to_color(colors, static_cast<float>(size)), fmt::format("{:g}", size));
        ImGui::TextDisabled("tokens per entry; every second merged entry is paler");
    }

    DrawnTokenMap draw_run(Context& context, const RunKey& key, float height) {
        DrawnTokenMap drawn;
        Session& session = context.session;
        ImGui::PushID(key.text().c_str());
        draw_run_title(context, key, ImGui::GetContentRegionAvail().x);
        static const TaskSlot<EntrySizes> slot;
        const auto answer = session.tasks.ask(slot, key.text(), session.stamp(key),
                                              [at = session.at(key)](const std::stop_token& stop) {
                                                  return read_sizes(at.reader->with_stop(stop), at.prompt, at.run);
                                              });
        const float map_height = height - ImGui::GetTextLineHeightWithSpacing() - ImGui::GetStyle().ItemSpacing.y;
        if (answer.value) {
            largest_ = std::max(largest_, answer.value->largest);
            TokenMap shown;
            shown.document = session.document(key);
            shown.run = key;
            shown.map = &maps_.get(key.text(), answer.value->pyramid);
            shown.colors = colors_for(context);
            shown.tooltip = [&](int layer, int64_t token) { draw_tooltip(context, key, *answer.value, layer, token); };
            drawn = draw_token_map(context, "##map", {0, map_height}, shown);
            if (drawn.entered >= 0) select_entry(session, key, *answer.value, drawn.entered, drawn.entered_token);
        } else {
            ImGui::BeginChild("waiting", {0, map_height});
            if (answer.error.empty())
                draw_nothing(context, "reading merged entries …");
            else
                draw_error(context, answer.error);
            ImGui::EndChild();
        }
        ImGui::PopID();
        return drawn;
    }

    static std::optional<analysis::EntryTokens> entry_at(const EntrySizes& sizes, int layer, int64_t token) {
        const auto entries = analysis::list_merged_entries(*sizes.kept, static_cast<size_t>(layer), 0, sizes.n_tokens);
        const auto found = std::find_if(entries.begin(), entries.end(), [&](const analysis::EntryTokens& entry) {
            return int64_t{entry.first} <= token && token <= int64_t{entry.last};
        });
        if (found == entries.end()) return std::nullopt;
        return *found;
    }

    static void select_entry(Session& session, const RunKey& key, const EntrySizes& sizes, int layer, int64_t token) {
        const auto entry = entry_at(sizes, layer, token);
        if (!entry) return;
        Cursor next = session.selection.cursor_at(key);
        next.layer = layer;
        next.first_token = entry->first;
        next.last_token = entry->last;
        session.selection.set(next);
    }

    static void draw_tooltip(Context& context, const RunKey& key, const EntrySizes& sizes, int layer, int64_t token) {
        const auto prompt = prompt_text(context.session, *context.session.document(key));
        const auto entry = entry_at(sizes, layer, token);
        if (!entry) {
            const bool is_held =
                sizes.kept->fate(static_cast<size_t>(layer), 0, static_cast<uint32_t>(token)).is_held();
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
        ImGui::TextUnformatted(fmt::format("layer {}: tokens {} to {} are one entry of {:g}", layer,
                                           analysis::format_count(entry->first), analysis::format_count(entry->last),
                                           entry->cardinality)
                                   .c_str());
        ImGui::PopTextWrapPos();
        ImGui::TextDisabled("%s", measure_definition("merging"));
    }

    bool fit_ = false;
    float largest_ = 1;  ///< largest entry of all runs shown so far, used as the common scale
    MapStore maps_;
};

}  // namespace

ViewKind merging_view() {
    return {"merging",    "Merged entries", "Tokens that share an entry in a layer, for each run that merges tokens",
            Dock::center, Topic::tokens,    []() -> std::unique_ptr<View> { return std::make_unique<MergingView>(); },
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
