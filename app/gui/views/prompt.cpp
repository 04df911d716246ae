#include <fmt/format.h>
#include <imgui.h>
#include <misc/cpp/imgui_stdlib.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "analysis/retention.h"
#include "analysis/token_report.h"
#include "app/gui/heat_map.h"
#include "app/gui/prompt_lines.h"
#include "app/gui/prompt_text.h"
#include "app/gui/shaped_text.h"
#include "app/gui/view.h"

namespace kvscope::gui {
namespace {

using Spans = std::vector<std::pair<int64_t, int64_t>>;

/// What one run kept, token by token.
struct Counts {
    std::shared_ptr<const trace::Kept> kept;
    std::vector<uint16_t> layers;  ///< (N): layers that keep the token in at least one head
    std::vector<uint16_t> heads;   ///< (N): heads of all layers that keep it
};

Counts read_counts(const trace::Reader& reader, const RunKey& key) {
    Counts counts;
    counts.kept = reader.kept(key.prompt, key.run);
    const auto n = static_cast<size_t>(reader.prompt(key.prompt).visible_tokens());
    counts.layers = analysis::layer_counts(analysis::kept_sets(*counts.kept, n));
    counts.heads.assign(n, 0);
    for (const uint32_t token : counts.kept->indices) ++counts.heads[token];
    return counts;
}

/// "0–3, 7, 12–14"
std::string ranges(const std::vector<size_t>& numbers) {
    std::string out;
    for (size_t i = 0; i < numbers.size();) {
        size_t j = i;
        while (j + 1 < numbers.size() && numbers[j + 1] == numbers[j] + 1) ++j;
        if (!out.empty()) out += ", ";
        out += i == j ? fmt::format("{}", numbers[i]) : fmt::format("{}–{}", numbers[i], numbers[j]);
        i = j + 1;
    }
    return out;
}

std::string where_kept(const trace::Kept& kept, int64_t token) {
    std::vector<size_t> layers;
    size_t n_heads = 0;
    for (size_t layer = 0; layer < kept.n_layers; ++layer) {
        size_t here = 0;
        for (size_t r = 0; r < kept.n_rows; ++r) {
            const auto row = kept.row(layer, r);
            here += std::binary_search(row.begin(), row.end(), static_cast<uint32_t>(token));
        }
        if (here > 0) layers.push_back(layer);
        n_heads += here;
    }
    if (layers.empty()) return "kept nowhere";
    return fmt::format("{} of {} layers, {} of {} heads: {}", layers.size(), kept.n_layers, n_heads,
                       kept.n_layers * kept.n_rows, layers.size() == kept.n_layers ? "all layers" : ranges(layers));
}

ImU32 ink_on(ImU32 ground) {
    const ImVec4 c = ImGui::ColorConvertU32ToFloat4(ground);
    return 0.299f * c.x + 0.587f * c.y + 0.114f * c.z > 0.5f ? IM_COL32(0, 0, 0, 255) : IM_COL32_WHITE;
}

/// Goes on in the same line where an item of this width still fits.
bool flow(float width) {
    const float right = ImGui::GetWindowPos().x + ImGui::GetContentRegionAvail().x + ImGui::GetCursorPosX();
    const float gap = ImGui::GetStyle().ItemSpacing.x;
    if (ImGui::GetItemRectMax().x + gap + width > right) return false;
    ImGui::SameLine();
    return true;
}

/// The text itself, each token on a ground that says how many layers or heads keep it; one column per run.
class PromptView : public View {
 public:
    void draw(Context& context) override {
        Session& session = context.session;
        const Document* focus = session.focus();
        if (!focus) {
            draw_nothing(context, "Open a trace or run the demo to read its prompt.");
            return;
        }
        if (focus->prompt >= focus->reader()->n_prompts()) {
            draw_nothing(context, "This trace holds no prompt yet: it appears when its prefill is done.");
            return;
        }
        const auto runs = columns(session);
        is_low_ = ImGui::GetContentRegionAvail().y < 14 * ImGui::GetFontSize();
        draw_header(context, *focus, runs);
        const float below = answer_height(context, *focus);
        const float room = ImGui::GetContentRegionAvail().y - below;
        draw_columns(context, *focus, runs, std::max(room, 3 * ImGui::GetFontSize()));
        if (below > 0) draw_answers(context, *focus);
    }

    std::vector<std::pair<std::string, std::string>> help() const override {
        return {{"move the mouse", "a token's id, position and where it is kept; it lights up everywhere"},
                {"click, Shift-click", "select a token in that run; extend to a span"},
                {"Ctrl+F, F3, Shift+F3", "search, next match, match before"},
                {"P, right-click", "pin a token; more about it"},
                {"F", "back to the prompt's begin"}};
    }

    void fit() override { wanted_token_ = 0; }
    void save(nlohmann::json& state) const override {
        state = {{"by_heads", by_heads_}, {"selected_only", selected_only_}, {"answers", answers_open_}};
    }
    void load(const nlohmann::json& state) override {
        by_heads_ = state.value("by_heads", false);
        selected_only_ = state.value("selected_only", false);
        answers_open_ = state.value("answers", false);
    }

 private:
    std::vector<RunKey> columns(const Session& session) const {
        const RunKey& selected = session.cursor().run;
        if (selected_only_ && session.exists(selected) && session.attributes(selected).status == "complete")
            return {selected};
        auto runs = session.visible_runs();
        if (runs.empty()) runs = session.visible_runs(true);
        if (selected_only_ && !runs.empty()) runs.resize(1);
        return runs;
    }

    // ---- above the text --------------------------------------------------------------------------------------------

    void draw_header(Context& context, const Document& document, const std::vector<RunKey>& runs) {
        const float em = ImGui::GetFontSize();
        int color_by = by_heads_ ? 1 : 0;
        ImGui::SetNextItemWidth(6 * em);
        if (ImGui::Combo("##prompt colour", &color_by, "by layers\0by heads\0")) by_heads_ = color_by == 1;
        ImGui::SetItemTooltip(
            "what the colour counts: layers that keep a token in at least one head, or heads of all layers");
        flow(9 * em);
        int which = selected_only_ ? 1 : 0;
        ImGui::SetNextItemWidth(9 * em);
        if (ImGui::Combo("##prompt columns", &which, "all shown runs\0selected run\0")) selected_only_ = which == 1;
        flow(9 * em);
        draw_search(context, document);
        flow(9 * em);
        ImGui::SetNextItemWidth(9 * em);
        ImGui::InputTextWithHint("##prompt mark", "mark a text everywhere", &context.session.mark);
        ImGui::SetItemTooltip("outlined in every view; below: was it kept, and where?");
        const bool fits = flow(13 * em);
        const bool has_scale = !runs.empty() && document.reader()->has_model() && (fits || !is_low_);
        if (has_scale)
            draw_scale(context, document, runs);
        else if (fits)
            ImGui::NewLine();
    }

    void draw_search(Context& context, const Document& document) {
        const float em = ImGui::GetFontSize();
        constexpr ImGuiInputFlags route = ImGuiInputFlags_RouteGlobal | ImGuiInputFlags_RouteOverActive;
        if (ImGui::Shortcut(ImGuiMod_Ctrl | ImGuiKey_F, route)) ImGui::SetKeyboardFocusHere();
        ImGui::SetNextItemWidth(9 * em);
        const bool entered = ImGui::InputTextWithHint("##prompt search", "search  (Ctrl+F)", &search_,
                                                      ImGuiInputTextFlags_EnterReturnsTrue);
        if (entered) ImGui::SetKeyboardFocusHere(-1);
        const Spans& found = matches(context, document);
        const bool forward = entered || ImGui::Shortcut(ImGuiKey_F3, route);
        const bool back = ImGui::Shortcut(ImGuiMod_Shift | ImGuiKey_F3, route);
        if (!found.empty() && (forward || back)) go_to_match(context, document, found, back);
        if (search_.empty()) return;
        ImGui::SameLine(0, 4);
        if (found.empty())
            ImGui::TextDisabled("%s", found_is_current_ ? "no match" : "…");
        else if (match_ < found.size())
            ImGui::TextDisabled("%zu of %zu", match_ + 1, found.size());
        else
            ImGui::TextDisabled("%zu matches", found.size());
    }

    const Spans& matches(Context& context, const Document& document) {
        static const Spans none;
        found_.reset();
        found_is_current_ = true;
        if (search_.empty()) return none;
        const auto prompt = prompt_text(context.session, document);
        if (!prompt) return none;
        const std::string stamp = fmt::format("{}/{}/{}", document.stamp(), document.prompt, search_);
        const auto answer = context.session.tasks.ask<Spans>(
            slot("search", document), stamp, [prompt, search = search_] { return find_spans(*prompt, search); });
        found_is_current_ = answer.current;
        if (!answer.current) return none;
        if (stamp != searched_) match_ = std::string::npos;
        searched_ = stamp;
        found_ = answer.value;
        return found_ ? *found_ : none;
    }

    /// The next match after the one that was shown, or after the selected token; it becomes the selection.
    void go_to_match(Context& context, const Document& document, const Spans& found, bool back) {
        if (match_ < found.size()) {
            match_ = (match_ + (back ? found.size() - 1 : 1)) % found.size();
        } else {
            const int64_t from = context.session.cursor().first_token;
            const auto next = std::lower_bound(found.begin(), found.end(), from,
                                               [](const auto& span, int64_t t) { return span.first < t; });
            match_ = next == found.end() ? 0 : static_cast<size_t>(next - found.begin());
        }
        Cursor cursor = context.session.cursor();
        if (cursor.run.document != document.id() || cursor.run.prompt != document.prompt) return;
        std::tie(cursor.first_token, cursor.last_token) = found[match_];
        context.session.selection.set(cursor);
    }

    MapColors colors_for(const Context& context, size_t most) const {
        const bool is_dark = context.theme.brightness == Brightness::dark;
        MapColors colors;
        colors.map = is_dark ? analysis::ColorMap::viridis : analysis::ColorMap::viridis_reversed;
        colors.map_begin = is_dark ? 0.25f : 0.1f;
        colors.map_end = 1;
        colors.min = 1;
        colors.max = static_cast<float>(std::max<size_t>(most, 2));
        colors.ground_below_min = true;
        colors.ground = packed(context.theme.ground);
        return colors;
    }

    void draw_scale(const Context& context, const Document& document, const std::vector<RunKey>& runs) const {
        const auto& reader = *document.reader();
        const auto layers = static_cast<size_t>(reader.model().n_layers);
        const RunKey& first = runs.front();
        const size_t rows = context.session.document(first)->reader()->n_rows(first.prompt, first.run);
        const size_t most = by_heads_ ? layers * rows : layers;
        const MapColors colors = colors_for(context, most);
        const float side = ImGui::GetFontSize();
        const ImVec2 at = ImGui::GetCursorScreenPos();
        const float y = at.y + ImGui::GetStyle().FramePadding.y;
        ImDrawList* list = ImGui::GetWindowDrawList();
        float x = at.x;
        const auto label = [&](const std::string& text) {
            list->AddText({x, y}, packed(context.theme.ink_quiet), text.c_str());
            x += ImGui::CalcTextSize(text.c_str()).x + 4;
        };
        list->AddRectFilled({x, y}, {x + side, y + side}, colors.ground);
        list->AddRect({x, y}, {x + side, y + side}, packed(context.theme.line));
        x += side + 3;
        label("not kept  1");
        const float width = 5 * side;
        for (int i = 0; i < static_cast<int>(width); ++i) {
            const float value = colors.min + (colors.max - colors.min) * static_cast<float>(i) / width;
            list->AddRectFilled({x + static_cast<float>(i), y}, {x + static_cast<float>(i) + 1, y + side},
                                color_of(colors, value));
        }
        x += width + 4;
        label(fmt::format("{} {}", most, by_heads_ ? "heads" : "layers"));
        ImGui::Dummy({x - at.x, ImGui::GetFrameHeight()});
    }

    // ---- the text --------------------------------------------------------------------------------------------------

    struct Column {
        RunKey run;
        const Document* document = nullptr;
        std::shared_ptr<const PromptText> prompt;
        std::shared_ptr<const PromptLines> lines;
        std::shared_ptr<const Counts> counts;
        std::string error;
        Spans marks;
        const std::set<int64_t>* pins = nullptr;
        float x = 0;  ///< on the screen
    };

    struct Grid {
        ImVec2 origin;     ///< of line 0 and cell 0 of the first column, on the screen
        float cell = 0;    ///< width
        float line = 0;    ///< height
        float column = 0;  ///< from column to column
        size_t cells = 0;  ///< of a line
        float top = 0;     ///< of the visible text, below the labels
        float bottom = 0;
    };

    void draw_columns(Context& context, const Document& focus, const std::vector<RunKey>& runs, float height) {
        const bool without_runs = runs.empty();
        ImGui::PushFont(context.fonts.mono, 0);
        const float em = ImGui::GetFontSize();
        Grid grid;
        grid.cell = ImGui::CalcTextSize("MMMMMMMMMM").x / 10;
        grid.line = std::round(1.4f * em);
        const float n = static_cast<float>(std::max<size_t>(runs.size(), 1));
        const float gap = em;
        const float scrollbar = ImGui::GetStyle().ScrollbarSize;
        const float available = ImGui::GetContentRegionAvail().x - scrollbar;
        grid.column = std::max(available / n, 26 * grid.cell + gap);
        grid.cells = static_cast<size_t>(std::max((grid.column - gap) / grid.cell, 4.0f));
        ImGui::SetNextWindowContentSize({grid.column * n, 0});
        ImGui::BeginChild("text", {0, height}, ImGuiChildFlags_None, ImGuiWindowFlags_HorizontalScrollbar);
        const float labels = without_runs ? 0 : std::round(1.6f * em);
        grid.origin = ImGui::GetCursorScreenPos();
        grid.origin.y += labels;
        grid.top = ImGui::GetWindowPos().y + labels;
        grid.bottom = ImGui::GetWindowPos().y + ImGui::GetWindowHeight();

        std::vector<Column> all;
        size_t n_lines = 0;
        for (size_t i = 0; i < std::max<size_t>(runs.size(), 1); ++i) {
            all.push_back(column(context, without_runs ? RunKey{focus.id(), focus.prompt, -1} : runs[i], grid));
            all.back().x = grid.origin.x + grid.column * static_cast<float>(i);
            if (all.back().lines) n_lines = std::max(n_lines, all.back().lines->size());
        }
        ImGui::Dummy({grid.column * n, labels + grid.line * static_cast<float>(n_lines)});
        scroll_to_selection(context, all, grid, labels);

        ImDrawList* list = ImGui::GetWindowDrawList();
        list->PushClipRect({ImGui::GetWindowPos().x, grid.top},
                           {ImGui::GetWindowPos().x + ImGui::GetWindowWidth(), grid.bottom}, true);
        int64_t under_mouse = -1;
        for (const Column& one : all) {
            const float left = ImGui::GetWindowPos().x;
            if (one.x > left + ImGui::GetWindowWidth() || one.x + grid.column < left) continue;
            draw_text_of(context, one, grid);
            const int64_t over = token_under_mouse(one, grid);
            if (over >= 0) {
                under_mouse = over;
                take_mouse(context, one, over);
            }
        }
        list->PopClipRect();
        ImGui::PopFont();
        if (!without_runs) draw_labels(context, all, grid, labels);
        draw_menu(context);
        take_keys(context, all, under_mouse);
        ImGui::EndChild();
    }

    Column column(Context& context, const RunKey& key, const Grid& grid) {
        Session& session = context.session;
        Column out;
        out.run = key;
        out.document = session.document(key);
        out.prompt = prompt_text(session, *out.document);
        if (!out.prompt) return out;
        const std::string stamp = fmt::format("{}/{}/{}", out.document->stamp(), out.document->prompt, grid.cells);
        out.lines =
            session.tasks
                .ask<PromptLines>(slot("lines", *out.document), stamp,
                                  [prompt = out.prompt, cells = grid.cells] { return break_lines(*prompt, cells); })
                .value;
        // Lines of the prompt that was shown before do not fit this one.
        if (out.lines && !out.lines->placed.empty() && out.lines->placed.back().token + 1 != out.prompt->tokens.size())
            out.lines.reset();
        if (key.run >= 0) {
            const auto answer = session.tasks.ask<Counts>(
                fmt::format("prompt counts {}.{}.{}", key.document, key.prompt, key.run), session.stamp(key),
                [reader = out.document->reader(), key] { return read_counts(*reader, key); });
            out.counts = answer.value;
            out.error = answer.error;
        }
        out.marks = marked_spans(session, *out.document);
        const auto pins = out.document->pins.find(out.document->prompt);
        if (pins != out.document->pins.end()) out.pins = &pins->second;
        return out;
    }

    void draw_labels(Context& context, const std::vector<Column>& all, const Grid& grid, float height) const {
        ImDrawList* list = ImGui::GetWindowDrawList();
        const ImVec2 at = ImGui::GetWindowPos();
        list->AddRectFilled(at, {at.x + ImGui::GetWindowWidth(), at.y + height}, packed(context.theme.panel));
        const float side = 0.65f * ImGui::GetFontSize();
        for (const Column& one : all) {
            ImGui::PushID(one.run.document);
            ImGui::PushID(one.run.run);
            const RunLook look = context.session.look(one.run);
            ImGui::SetCursorScreenPos({one.x, at.y});
            if (ImGui::InvisibleButton("run", {grid.column - ImGui::GetFontSize(), height}))
                context.session.select_run(one.run);
            ImGui::SetItemTooltip("%s", one.error.empty() ? look.label.c_str() : one.error.c_str());
            list->AddRectFilled({one.x, at.y + 4}, {one.x + side, at.y + 4 + side},
                                packed(on_ground(look.style.color, context.theme)));
            const bool is_selected = one.run == context.session.cursor().run;
            if (is_selected) ImGui::PushFont(context.fonts.bold, 0);
            list->PushClipRect({one.x, at.y}, {one.x + grid.column - 8, at.y + height}, true);
            list->AddText({one.x + side + 6, at.y}, packed(one.error.empty() ? context.theme.ink : context.theme.error),
                          look.label.c_str());
            list->PopClipRect();
            if (is_selected) ImGui::PopFont();
            ImGui::PopID();
            ImGui::PopID();
        }
    }

    void draw_text_of(Context& context, const Column& one, const Grid& grid) const {
        ImDrawList* list = ImGui::GetWindowDrawList();
        if (!one.lines || !one.prompt) {
            list->AddText({one.x, grid.top}, packed(context.theme.ink_quiet), "reading …");
            return;
        }
        const auto [first, last] = visible_lines(*one.lines, grid);
        list->AddRectFilled({one.x - 4, grid.top}, {one.x + grid.column - ImGui::GetFontSize() + 4, grid.bottom},
                            packed(context.theme.ground));
        const auto& reader = *one.document->reader();
        const size_t layers = reader.has_model() ? static_cast<size_t>(reader.model().n_layers) : 1;
        const size_t rows = one.counts ? one.counts->kept->n_rows : 1;
        const MapColors colors = colors_for(context, by_heads_ ? layers * rows : layers);
        const auto* counts = one.counts ? (by_heads_ ? &one.counts->heads : &one.counts->layers) : nullptr;
        const float below = std::round((grid.line - ImGui::GetFontSize()) / 2);
        const auto place = [&](size_t line, const PlacedToken& piece) {
            return ImVec2{one.x + grid.cell * static_cast<float>(piece.cell),
                          grid.origin.y + grid.line * static_cast<float>(line)};
        };
        const auto ground_of = [&](const PlacedToken& piece) {
            const bool is_kept = counts && piece.token < counts->size() && (*counts)[piece.token] > 0;
            return is_kept ? color_of(colors, static_cast<float>((*counts)[piece.token])) : ImU32{0};
        };
        for (size_t i = first; i < last; ++i) {
            for (const PlacedToken& piece : one.lines->line(i)) {
                const ImU32 ground = ground_of(piece);
                if (!ground) continue;
                const ImVec2 from = place(i, piece);
                const float width = grid.cell * static_cast<float>(piece.n_cells);
                list->AddRectFilled({from.x, from.y + 1}, {from.x + width - 1, from.y + grid.line - 1}, ground);
            }
            for (const PlacedToken& piece : one.lines->line(i)) {
                const ImVec2 from = place(i, piece);
                const float width = grid.cell * static_cast<float>(piece.n_cells);
                const ImU32 ground = ground_of(piece);
                const ImU32 ink =
                    ground ? ink_on(ground) : packed(one.run.run < 0 ? context.theme.ink : context.theme.ink_quiet);
                const std::string_view shown = one.prompt->shown[piece.token];
                draw_piece(list, {from.x, from.y + below}, ink, grid.cell, width,
                           shown.substr(piece.begin, piece.end - piece.begin));
                draw_outlines(context, one, piece, from, {from.x + width, from.y + grid.line});
            }
        }
    }

    /// A word's leading space is fainter than its letters.
    static void draw_piece(ImDrawList* list, ImVec2 at, ImU32 ink, float cell, float width, std::string_view shown) {
        constexpr std::string_view space = "·";
        const ImU32 faint = (ink & 0xffffffu) | (90u << IM_COL32_A_SHIFT);
        if (shown.starts_with(space) && shown.size() > space.size() && !shown.substr(space.size()).starts_with(space)) {
            shown.remove_prefix(space.size());
            width -= cell;
            if (is_right_to_left(shown)) {
                draw_text(list, {at.x + width, at.y}, faint, space);
            } else {
                draw_text(list, at, faint, space);
                at.x += cell;
            }
        }
        const bool is_blank = shown.starts_with(space) || shown.starts_with("↵") || shown.starts_with("→");
        draw_text(list, at, is_blank ? faint : ink, shown, width);
    }

    void draw_outlines(Context& context, const Column& one, const PlacedToken& piece, ImVec2 from, ImVec2 to) const {
        const int64_t token = piece.token;
        const Theme& theme = context.theme;
        ImDrawList* list = ImGui::GetWindowDrawList();
        const auto outline = [&](int64_t span_first, int64_t span_last, ImU32 color, float thickness) {
            list->AddLine({from.x, from.y + 1}, {to.x, from.y + 1}, color, thickness);
            list->AddLine({from.x, to.y - 1}, {to.x, to.y - 1}, color, thickness);
            if (token == span_first) list->AddLine({from.x, from.y}, {from.x, to.y}, color, thickness);
            if (token == span_last) list->AddLine({to.x - 1, from.y}, {to.x - 1, to.y}, color, thickness);
        };
        const auto containing = [&](const Spans& spans) {
            auto after = std::upper_bound(spans.begin(), spans.end(), token,
                                          [](int64_t t, const auto& span) { return t < span.first; });
            return after != spans.begin() && (--after)->second >= token ? after : spans.end();
        };
        if (one.pins && one.pins->contains(token)) {
            list->AddTriangleFilled(from, {from.x + 6, from.y}, {from.x, from.y + 6}, packed(theme.warning));
            list->AddLine({from.x, to.y - 2}, {to.x, to.y - 2}, packed(theme.warning), 2);
        }
        if (note_at(*one.document, token))
            list->AddLine({from.x, to.y - 1}, {to.x, to.y - 1}, packed(theme.warning), 2);
        if (const auto mark = containing(one.marks); mark != one.marks.end())
            outline(mark->first, mark->second, packed(theme.mark), 2);
        if (found_ && one.document->id() == context.session.focus()->id()) {
            if (const auto match = containing(*found_); match != found_->end()) {
                const bool is_current = static_cast<size_t>(match - found_->begin()) == match_;
                outline(match->first, match->second, packed(theme.ink, is_current ? 1.0f : 0.6f),
                        is_current ? 2.0f : 1.0f);
            }
        }
        const auto is_here = [&](const Cursor& cursor) {
            return cursor.run.document == one.run.document && cursor.run.prompt == one.run.prompt &&
                   cursor.contains(token);
        };
        const Cursor& selected = context.session.cursor();
        if (is_here(selected)) outline(selected.first_token, selected.last_token, packed(theme.accent), 2);
        if (is_here(context.session.hover())) list->AddRectFilled(from, to, packed(theme.hover, 0.3f));
    }

    static const Note* note_at(const Document& document, int64_t token) {
        for (const Note& note : document.notes) {
            if (note.prompt == document.prompt && token >= note.first_token && token <= note.last_token) return &note;
        }
        return nullptr;
    }

    static std::pair<size_t, size_t> visible_lines(const PromptLines& lines, const Grid& grid) {
        const auto first = static_cast<size_t>(std::max((grid.top - grid.origin.y) / grid.line, 0.0f));
        const auto last = static_cast<size_t>(std::max((grid.bottom - grid.origin.y) / grid.line + 1, 0.0f));
        return {std::min(first, lines.size()), std::min(last, lines.size())};
    }

    // ---- mouse and keys --------------------------------------------------------------------------------------------

    static int64_t token_under_mouse(const Column& one, const Grid& grid) {
        const ImVec2 mouse = ImGui::GetMousePos();
        if (!one.lines || !ImGui::IsWindowHovered() || mouse.y < grid.top || mouse.y >= grid.bottom ||
            mouse.x < one.x || mouse.x >= one.x + grid.column)
            return -1;
        const auto line = static_cast<size_t>(std::max((mouse.y - grid.origin.y) / grid.line, 0.0f));
        if (line >= one.lines->size()) return -1;
        const float cell = (mouse.x - one.x) / grid.cell;
        for (const PlacedToken& piece : one.lines->line(line)) {
            if (cell >= static_cast<float>(piece.cell) && cell < static_cast<float>(piece.cell + piece.n_cells))
                return piece.token;
        }
        return -1;
    }

    void take_mouse(Context& context, const Column& one, int64_t token) {
        Session& session = context.session;
        Cursor over = session.cursor();
        if (over.run.document != one.run.document || over.run.prompt != one.run.prompt) over = {};
        if (one.run.run >= 0) over.run = one.run;
        if (!over.run.valid()) over.run = {one.run.document, one.run.prompt, -1};
        Cursor next = over;
        over.first_token = over.last_token = token;
        session.set_hover(over);
        if (ImGui::IsMouseClicked(ImGuiMouseButton_Left) && over.run.valid()) {
            const bool extend = ImGui::GetIO().KeyShift && next.has_tokens();
            next.first_token = extend ? std::min(next.first_token, token) : token;
            next.last_token = extend ? std::max(next.last_token, token) : token;
            session.selection.set(next);
            seen_ = next;
        }
        if (ImGui::IsMouseClicked(ImGuiMouseButton_Right)) {
            menu_token_ = token;
            menu_document_ = one.run.document;
            ImGui::OpenPopup("token menu");
        }
        if (!ImGui::IsPopupOpen("token menu")) draw_tooltip(context, one, token);
    }

    void draw_tooltip(Context& context, const Column& one, int64_t token) const {
        const auto t = static_cast<size_t>(token);
        ImGui::BeginTooltip();
        text_item(one.prompt->shown[t]);
        ImGui::SameLine();
        ImGui::PushFont(context.fonts.text, 0);
        ImGui::TextDisabled("token %lld · id %d%s", static_cast<long long>(token), one.prompt->ids[t],
                            token >= one.document->reader()->prompt(one.document->prompt).visible_tokens()
                                ? " · after what policies saw: kept whole, in no budget"
                                : "");
        if (const Note* note = note_at(*one.document, token)) {
            ImGui::PushTextWrapPos(30 * ImGui::GetFontSize());
            ImGui::TextUnformatted(note->text.c_str());
            ImGui::PopTextWrapPos();
        }
        const auto runs = columns(context.session);
        const float side = 0.65f * ImGui::GetFontSize();
        for (const RunKey& key : runs) {
            if (key.document != one.run.document || key.prompt != one.run.prompt) continue;
            const Document* document = context.session.document(key);
            if (token >= document->reader()->prompt(key.prompt).visible_tokens()) break;
            const auto answer = context.session.tasks.ask<Counts>(
                fmt::format("prompt counts {}.{}.{}", key.document, key.prompt, key.run), context.session.stamp(key),
                [reader = document->reader(), key] { return read_counts(*reader, key); });
            if (!answer.value) continue;
            const ImVec2 at = ImGui::GetCursorScreenPos();
            const RunLook look = context.session.look(key);
            ImGui::GetWindowDrawList()->AddRectFilled({at.x, at.y + 5}, {at.x + side, at.y + 5 + side},
                                                      packed(on_ground(look.style.color, context.theme)));
            ImGui::Dummy({side, 0});
            ImGui::SameLine();
            if (key == one.run) ImGui::PushFont(context.fonts.bold, 0);
            ImGui::TextUnformatted(look.label.c_str());
            if (key == one.run) ImGui::PopFont();
            ImGui::SameLine();
            ImGui::TextDisabled("%s", where_kept(*answer.value->kept, token).c_str());
        }
        ImGui::PopFont();
        ImGui::EndTooltip();
    }

    void draw_menu(Context& context) {
        if (!ImGui::BeginPopup("token menu")) return;
        Document* document = context.session.document(menu_document_);
        const auto prompt = document ? prompt_text(context.session, *document) : nullptr;
        const auto t = static_cast<size_t>(menu_token_);
        if (!prompt || t >= prompt->tokens.size()) {
            ImGui::CloseCurrentPopup();
        } else {
            const Cursor& selected = context.session.cursor();
            const bool in_span = selected.run.document == menu_document_ && selected.contains(menu_token_);
            const auto first = in_span ? static_cast<size_t>(selected.first_token) : t;
            const auto last = in_span ? static_cast<size_t>(selected.last_token) : t;
            const std::string text =
                prompt->text.substr(prompt->begins[first], prompt->begins[last + 1] - prompt->begins[first]);
            auto& pins = document->pins[document->prompt];
            if (ImGui::MenuItem("Pin token", "P", pins.contains(menu_token_))) document->toggle_pin(menu_token_);
            if (ImGui::MenuItem("Unpin all tokens", nullptr, false, !pins.empty())) {
                pins.clear();
                document->annotations_changed = true;
            }
            ImGui::Separator();
            if (ImGui::MenuItem("Mark this text")) context.session.mark = text;
            if (ImGui::MenuItem("Search for this text")) search_ = text;
            if (ImGui::MenuItem("Copy text")) ImGui::SetClipboardText(text.c_str());
        }
        ImGui::EndPopup();
    }

    void take_keys(Context& context, const std::vector<Column>& all, int64_t under_mouse) const {
        if (ImGui::GetIO().WantTextInput || !ImGui::IsWindowFocused(ImGuiFocusedFlags_RootAndChildWindows)) return;
        if (!ImGui::IsKeyPressed(ImGuiKey_P, false) || ImGui::GetIO().KeyCtrl || all.empty()) return;
        const int64_t token = under_mouse >= 0 ? under_mouse : context.session.cursor().first_token;
        Document* document = context.session.document(all.front().run.document);
        if (token >= 0 && document) document->toggle_pin(token);
    }

    /// What was selected, or is under the mouse, in another view comes into view here.
    void scroll_to_selection(Context& context, const std::vector<Column>& all, const Grid& grid, float labels) {
        const Cursor& selected = context.session.cursor();
        const Cursor& hover = context.session.hover();
        int64_t token = -1;
        RunKey run;
        if (selected.first_token != seen_.first_token || selected.last_token != seen_.last_token) {
            token = selected.first_token;
            run = selected.run;
        } else if (hover.has_tokens() && !ImGui::IsWindowHovered() && hover.first_token != hovered_) {
            token = hover.first_token;
            run = hover.run;
        }
        hovered_ = hover.first_token;
        if (wanted_token_ >= 0) {
            token = wanted_token_;
            run = all.front().run;
            wanted_token_ = -1;
        }
        const Column& first_column = all.front();
        if (context.session.mark != seen_mark_ && (!first_column.marks.empty() || context.session.mark.empty())) {
            if (!first_column.marks.empty() && wanted_token_ < 0) {
                token = first_column.marks.front().first;
                run = first_column.run;
            }
            seen_mark_ = context.session.mark;
        }
        if (selected.run != seen_.run) {
            for (const Column& one : all) {
                if (one.run != selected.run) continue;
                const float x = one.x - grid.origin.x;
                if (x < ImGui::GetScrollX() || x + grid.column > ImGui::GetScrollX() + ImGui::GetWindowWidth())
                    ImGui::SetScrollX(x);
            }
        }
        bool is_placed = token < 0;
        for (const Column& one : all) {
            if (token < 0 || one.run.document != run.document || one.run.prompt != run.prompt || !one.lines) continue;
            is_placed = true;
            const float y = grid.line * static_cast<float>(one.lines->line_of(token));
            const float room = ImGui::GetWindowHeight() - labels;
            const float top = ImGui::GetScrollY();
            if (y < top || y + 2 * grid.line > top + room) ImGui::SetScrollY(std::max(y - room / 2, 0.0f));
            break;
        }
        if (is_placed) seen_ = selected;
    }

    // ---- was it kept? ----------------------------------------------------------------------------------------------

    /// The selected tokens, else the first place of the marked text.
    static std::pair<int64_t, int64_t> asked_span(Context& context, const Document& document) {
        const Cursor& selected = context.session.cursor();
        const bool is_here = selected.run.document == document.id() && selected.run.prompt == document.prompt;
        if (is_here && selected.has_tokens()) return {selected.first_token, selected.last_token};
        const auto marks = marked_spans(context.session, document);
        return marks.empty() ? std::pair<int64_t, int64_t>{-1, -1} : marks.front();
    }

    float answer_height(Context& context, const Document& document) const {
        if (is_low_ || asked_span(context, document).first < 0) return 0;
        const float line = ImGui::GetTextLineHeightWithSpacing();
        const float most = std::max(ImGui::GetContentRegionAvail().y / 2, 2 * line);
        const auto n = static_cast<float>(columns(context.session).size());
        return answers_open_ ? std::min((n + 1.5f) * line, most) : 1.5f * line;
    }

    void draw_answers(Context& context, const Document& document) {
        using Reports = std::vector<analysis::SpanReport>;
        Session& session = context.session;
        const auto [first, last] = asked_span(context, document);
        const auto prompt = prompt_text(session, document);
        if (!prompt || static_cast<size_t>(last) >= prompt->shown.size()) return;
        std::string stamp = fmt::format("{} {} {} {}", document.stamp(), document.prompt, first, last);
        for (int run = document.file()->n_runs(document.prompt); run < document.reader()->n_runs(document.prompt);
             ++run)
            stamp += document.run_stamp(document.prompt, run);
        const auto answer =
            session.tasks.ask<Reports>(slot("span", document), stamp,
                                       [reader = document.reader(), index = document.prompt, from = first, to = last] {
                                           return analysis::span_report(*reader, index, from, to);
                                       });

        std::string shown;
        for (int64_t t = first; t <= last && shown.size() < 40; ++t) shown += prompt->shown[static_cast<size_t>(t)];
        if (ImGui::ArrowButton("##prompt answers", answers_open_ ? ImGuiDir_Down : ImGuiDir_Right))
            answers_open_ = !answers_open_;
        ImGui::SetItemTooltip("was it kept, and where? one line, or every shown run");
        ImGui::SameLine();
        ImGui::PushFont(context.fonts.mono, 0);
        text_item(shown);
        ImGui::PopFont();
        ImGui::SameLine();
        ImGui::TextDisabled("%s", first == last ? fmt::format("token {}", first).c_str()
                                                : fmt::format("tokens {}–{}", first, last).c_str());
        if (!answer.error.empty()) {
            ImGui::SameLine();
            ImGui::TextDisabled("%s", answer.error.c_str());
            return;
        }
        if (!answer.value) return;
        if (!answers_open_) {
            for (const auto& report : *answer.value) {
                if (report.run != session.cursor().run.run) continue;
                ImGui::SameLine();
                ImGui::TextUnformatted(report.sentence.c_str());
            }
            return;
        }
        ImGui::BeginChild("span answers");
        for (const auto& report : *answer.value) {
            const RunKey key{document.id(), document.prompt, report.run};
            if (!session.exists(key) || !session.is_visible(key)) continue;
            const float side = 0.65f * ImGui::GetFontSize();
            const ImVec2 at = ImGui::GetCursorScreenPos();
            ImGui::GetWindowDrawList()->AddRectFilled({at.x, at.y + 5}, {at.x + side, at.y + 5 + side},
                                                      packed(on_ground(session.look(key).style.color, context.theme)));
            ImGui::Dummy({side, 0});
            ImGui::SameLine();
            ImGui::TextUnformatted(report.sentence.c_str());
            if (ImGui::IsItemClicked()) session.select_run(key);
        }
        ImGui::EndChild();
    }

    std::string slot(const char* what, const Document& document) const {
        return fmt::format("prompt {} {} {}", what, static_cast<const void*>(this), document.id());
    }

    bool by_heads_ = false;
    bool selected_only_ = false;
    bool is_low_ = false;  ///< there is room for the text and little else
    bool answers_open_ = false;
    std::string search_;
    std::string searched_;                ///< stamp of the matches that match_ counts in
    std::shared_ptr<const Spans> found_;  ///< of this frame
    bool found_is_current_ = true;
    size_t match_ = std::string::npos;
    Cursor seen_;  ///< the selection that was brought into view last
    std::string seen_mark_;
    int64_t hovered_ = -1;
    int64_t wanted_token_ = -1;
    int64_t menu_token_ = -1;
    int menu_document_ = -1;
};

}  // namespace

ViewKind prompt_view() {
    return {"prompt", "Prompt", "The text itself, each token coloured by how many layers or heads keep it",
            Dock::center, []() -> std::unique_ptr<View> { return std::make_unique<PromptView>(); }};
}

}  // namespace kvscope::gui
