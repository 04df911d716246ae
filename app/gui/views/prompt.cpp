#include <fmt/format.h>
#include <fmt/ranges.h>
#include <imgui.h>
#include <misc/cpp/imgui_stdlib.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "analysis/tables/number_text.h"
#include "app/gui/drawing/run_marks.h"
#include "app/gui/figure/figure_menu.h"
#include "app/gui/tokens/map_key.h"
#include "app/gui/tokens/prompt_column.h"
#include "app/gui/tokens/prompt_search.h"
#include "app/gui/tokens/reading_place.h"
#include "app/gui/tokens/span_retention.h"
#include "app/gui/tokens/token_retention_counts.h"
#include "app/gui/tokens/token_tooltip.h"
#include "app/gui/view/action_registry.h"
#include "app/gui/view/run_label.h"
#include "app/gui/view/text_field.h"
#include "app/gui/view/view.h"
#include "app/gui/view/widgets.h"
#include "app/gui/view_data/prompt_text.h"
#include "common/json.h"

namespace kvscope::gui {
namespace {

class PromptView : public View {
 public:
    void draw(Context& context) override {
        Session& session = context.session;
        const Document* focus = session.focus();
        if (!focus) return draw_nothing(context, open_trace_or_demo() + " to read its prompt.");
        if (focus->prompt >= focus->reader()->n_prompts()) return draw_nothing(context, why_no_prompt(*focus));
        if (color_ == Color::difference && !subtracted(session)) {
            choose_color();
            return draw_nothing(context, session.pair.is_complete()
                                             ? "A − B: A and B are not both runs of this prompt. Select a run of their "
                                               "prompt, or choose other runs as A and B in Runs."
                                             : "A − B: choose two runs of this prompt as A and B in Runs.");
        }
        const auto pinned = focus->pins.find(focus->prompt);
        if (pinned != focus->pins.end() && !pinned->second.empty() && takes_call("Unpin all tokens"))
            unpin_all(*session.document(focus->id()));
        const auto runs = columns(session);
        is_low_ = ImGui::GetContentRegionAvail().y < 14 * ImGui::GetFontSize();
        draw_header(context, *focus, runs);
        const float below = is_low_ ? 0 : answers_.height(context, *focus, runs.size());
        const float room = ImGui::GetContentRegionAvail().y - below;
        draw_columns(context, *focus, runs, std::max(room, 3 * ImGui::GetFontSize()));
        if (below > 0) answers_.draw(context, *focus);
    }

    std::vector<std::string> commands() const override { return {"Unpin all tokens"}; }

    std::vector<std::pair<std::string, std::string>> help() const override {
        return {
            {"move the mouse", "a token's id, position and where it is kept; the token is highlighted in all views"},
            {"click, drag, Shift-click",
             "select a token, a span, or all tokens up to the clicked token, together with the run"},
            {"Ctrl+F, F3, Shift+F3", "search, next match, previous match"},
            {"P, right-click", "pin a token; open its menu"},
            {"F", "return to the start of the prompt"}};
    }

    std::optional<FigureRequest> figure(const Session& session) const override {
        const Document* focus = session.focus();
        if (!focus || focus->prompt >= focus->reader()->n_prompts()) return std::nullopt;
        FigureRequest request{focus->id(), "prompt", {}};
        request.options.prompt = focus->prompt;
        request.options.source = by_heads() ? "heads" : "layers";
        if (const auto both = subtracted(session)) {
            request.runs = {both->first.run};
            request.others = {{both->second.document, request.options, {both->second.run}}};
            request.difference = true;
            return request;
        }
        for (const RunKey& key : columns(session))
            if (key.document == focus->id()) request.runs.push_back(key.run);
        return request.runs.empty() ? std::nullopt : std::optional(request);
    }

    void fit() override { wanted_token_ = 0; }
    void save(nlohmann::json& state) const override {
        state = {{"by_heads", by_heads()},
                 {"difference", color_ == Color::difference},
                 {"selected_only", selected_only_},
                 {"answers", answers_.is_open}};
    }
    void load(const nlohmann::json& state) override {
        color_ = state.value("difference", false) ? Color::difference
                 : state.value("by_heads", false) ? Color::heads
                                                  : Color::layers;
        selected_only_ = state.value("selected_only", false);
        answers_.is_open = state.value("answers", false);
    }

 private:
    enum class Color { layers, heads, difference };

    bool by_heads() const { return color_ == Color::heads; }

    /// Returns A and B if their difference is requested and both are runs of the shown prompt.
    std::optional<std::pair<RunKey, RunKey>> subtracted(const Session& session) const {
        if (color_ != Color::difference) return std::nullopt;
        const Document* focus = session.focus();
        const auto both = session.compared();
        for (const RunKey& run : {both.first, both.second})
            if (!focus || !session.exists(run) || run.document != focus->id() || run.prompt != focus->prompt)
                return std::nullopt;
        if (both.first == both.second) return std::nullopt;
        return both;
    }

    std::vector<RunKey> columns(const Session& session) const {
        if (const auto both = subtracted(session)) return {both->first};
        const RunKey selected = session.displayed_run();
        if (selected_only_ && session.exists(selected) && session.attributes(selected).status == "complete")
            return {selected};
        auto runs = session.visible_runs();
        if (runs.empty()) runs = session.visible_runs(true);
        if (selected_only_ && !runs.empty()) runs.resize(1);
        return runs;
    }

    // Width of the color scale with its labels, in multiples of the font size.
    static constexpr float n_scale_sides = 5;
    static constexpr float scale_gap = 0.3f;

    void draw_header(Context& context, const Document& document, const std::vector<RunKey>& runs) {
        const float em = ImGui::GetFontSize();
        const bool has_scale = !runs.empty() && document.reader()->has_model();
        if (is_low_ && ImGui::GetContentRegionAvail().x < 50 * em) {
            search_.draw(context, document);
            ImGui::SameLine();
            if (ImGui::Button("more##prompt")) ImGui::OpenPopup("prompt choices");
            if (ImGui::BeginPopup("prompt choices")) {
                choose_color();
                choose_columns();
                draw_mark_field(context);
                ImGui::EndPopup();
            }
            if (has_scale && same_line_if_fits(scale_width(context, runs))) draw_scale(context, runs);
            return;
        }
        choose_color();
        same_line_if_fits(9 * em);
        choose_columns();
        same_line_if_fits(9 * em);
        search_.draw(context, document);
        same_line_if_fits(9 * em);
        draw_mark_field(context);
        if (!has_scale) return;
        same_line_if_fits(scale_width(context, runs));
        draw_scale(context, runs);
    }

    void choose_color() {
        int color_by = static_cast<int>(color_);
        ImGui::SetNextItemWidth(6 * ImGui::GetFontSize());
        if (ImGui::Combo("##prompt colour", &color_by, "by layers\0by heads\0A − B\0"))
            color_ = static_cast<Color>(color_by);
        ImGui::SetItemTooltip(
            "The color counts the layers in which at least one head keeps a token, or the heads in all layers. A token "
            "in an entry of n tokens counts 1/n. A − B: layers in A minus layers in B.");
    }

    void choose_columns() {
        if (color_ == Color::difference) return;
        int which = selected_only_ ? 1 : 0;
        ImGui::SetNextItemWidth(9 * ImGui::GetFontSize());
        if (ImGui::Combo("##prompt columns", &which, "all shown runs\0selected run\0")) selected_only_ = which == 1;
    }

    static void draw_mark_field(Context& context) {
        ImGui::SetNextItemWidth(9 * ImGui::GetFontSize());
        text_field("##prompt mark", "mark a text", &context.session.mark);
        ImGui::SetItemTooltip("outlines the text in every view and shows below whether it was kept");
    }

    float scale_width(const Context& context, const std::vector<RunKey>& runs) const {
        const float side = ImGui::GetFontSize();
        if (color_ == Color::difference) return 21 * side;
        const float labels = ImGui::CalcTextSize((least_in_words() + most_in_words(context, runs)).c_str()).x;
        return labels + (1 + n_scale_sides + 3 * scale_gap) * side;
    }

    std::string least_in_words() const { return least_ < 1 ? fmt::format("not kept  {:.2g}", least_) : "not kept  1"; }

    /// Returns the label of the scale's upper end, e.g. "30 layers". If models differ, the label names the traces.
    std::string most_in_words(const Context& context, const std::vector<RunKey>& runs) const {
        const char* what = by_heads() ? "heads" : "layers";
        std::map<size_t, std::set<std::string>> traces;
        for (const RunKey& key : runs)
            traces[most_of(context, key)].insert(badge_in_brackets(*context.session.document(key)));
        const char* parts = least_ < 1 ? "  (1/n in an entry of n)" : "";
        if (traces.size() == 1) return fmt::format("{} {}{}", traces.begin()->first, what, parts);
        std::string text;
        for (const auto& [most, names] : traces)
            text += fmt::format("{}{} {} of {}", text.empty() ? "" : ", ", most, what, fmt::join(names, " "));
        return text + parts;
    }

    size_t most_of(const Context& context, const RunKey& run) const {
        const auto layers = static_cast<size_t>(context.session.document(run)->reader()->model().n_layers);
        return by_heads() ? layers * context.session.at(run).n_rows() : layers;
    }

    void draw_scale(const Context& context, const std::vector<RunKey>& runs) const {
        if (color_ == Color::difference) return draw_difference_scale(context);
        const size_t most = most_of(context, runs.front());
        const MapColors colors = retention_count_colors(context.theme, most, least_);
        const float side = ImGui::GetFontSize();
        const ImVec2 at = ImGui::GetCursorScreenPos();
        const float y = at.y + ImGui::GetStyle().FramePadding.y;
        ImDrawList* list = ImGui::GetWindowDrawList();
        const float gap = scale_gap * side;
        float x = at.x;
        const auto label = [&](const std::string& text) {
            list->AddText({x, y}, packed(context.theme.ink_quiet), text.c_str());
            draw_badges_over_text(context, text, {x, y});
            x += ImGui::CalcTextSize(text.c_str()).x + gap;
        };
        list->AddRectFilled({x, y}, {x + side, y + side}, colors.ground);
        list->AddRect({x, y}, {x + side, y + side}, packed(context.theme.line));
        x += side + gap;
        label(least_in_words());
        const float width = n_scale_sides * side;
        draw_color_gradient(colors, {x, y}, {width, side});
        x += width + gap;
        label(most_in_words(context, runs));
        ImGui::Dummy({x - at.x, ImGui::GetFrameHeight()});
    }

    void draw_difference_scale(const Context& context) const {
        const std::string most = analysis::format_number(farthest_, 3);
        const float side = ImGui::GetFontSize();
        ImGui::AlignTextToFramePadding();
        disabled_text("B in more  −" + most);
        ImGui::SameLine(0, 0.3f * side);
        const ImVec2 at = ImGui::GetCursorScreenPos();
        draw_color_gradient(difference_colors(context.theme, static_cast<float>(farthest_)),
                            {at.x, at.y + ImGui::GetStyle().FramePadding.y}, {6 * side, side});
        ImGui::Dummy({6 * side, ImGui::GetFrameHeight()});
        ImGui::SameLine(0, 0.3f * side);
        ImGui::AlignTextToFramePadding();
        disabled_text(fmt::format("+{} layers  A in more", most));
    }

    PromptGrid grid_of(size_t n_columns) const {
        const float em = ImGui::GetFontSize();
        PromptGrid grid;
        grid.by_heads = by_heads();
        grid.cell = ImGui::CalcTextSize("MMMMMMMMMM").x / 10;
        grid.line = std::round(1.4f * em);
        const float available = ImGui::GetContentRegionAvail().x - ImGui::GetStyle().ScrollbarSize;
        grid.column = std::max(available / static_cast<float>(n_columns), 26 * grid.cell + em);
        grid.cells = static_cast<size_t>(std::max((grid.column - em) / grid.cell, 4.0f));
        return grid;
    }

    /// Returns the columns of the runs, or one column with the prompt alone if there is no run. Sets the grid's limits.
    std::vector<PromptColumn> ask_columns(Session& session, const Document& focus, const std::vector<RunKey>& runs,
                                          PromptGrid& grid) const {
        std::vector<PromptColumn> all;
        const auto both = subtracted(session);
        for (size_t i = 0; i < std::max<size_t>(runs.size(), 1); ++i) {
            const RunKey key = runs.empty() ? RunKey{focus.id(), focus.prompt, {}} : runs[i];
            PromptColumn& column = all.emplace_back(make_prompt_column(session, key, lines_, grid));
            column.x = grid.origin.x + grid.column * static_cast<float>(i);
            if (both) {
                const auto less = token_retention_counts(session, both->second);
                column.less = less.value;
                if (column.error.empty()) column.error = less.error;
                if (!column.less) column.counts.reset();  // the counts of a single run are not a difference
                if (!column.counts) column.less.reset();
                if (column.less) grid.farthest = farthest_of(column.counts, column.less);
            }
            if (const auto& counts = column.counts)
                grid.least = std::min(grid.least, by_heads() ? counts->least_heads : counts->least_layers);
        }
        return all;
    }

    double farthest_of(const std::shared_ptr<const TokenRetentionCounts>& a,
                       const std::shared_ptr<const TokenRetentionCounts>& b) const {
        if (farthest_pair_ != std::pair{a, b}) farthest_seen_ = largest_layer_count_difference(*a, *b);
        farthest_pair_ = {a, b};
        return farthest_seen_;
    }

    void draw_columns(Context& context, const Document& focus, const std::vector<RunKey>& runs, float height) {
        ImGui::PushFont(context.fonts.mono, 0);
        PromptGrid grid = grid_of(std::max<size_t>(runs.size(), 1));
        const float width = grid.column * static_cast<float>(std::max<size_t>(runs.size(), 1));
        ImGui::SetNextWindowContentSize({width, 0});
        ImGui::BeginChild("text", {0, height}, ImGuiChildFlags_None, ImGuiWindowFlags_HorizontalScrollbar);
        const float labels = runs.empty() ? 0 : std::round(1.6f * ImGui::GetFontSize());
        grid.origin = ImGui::GetCursorScreenPos();
        grid.origin.y += labels;
        grid.top = ImGui::GetWindowPos().y + labels;
        grid.bottom = ImGui::GetWindowPos().y + ImGui::GetWindowHeight();
        const std::vector<PromptColumn> all = ask_columns(context.session, focus, runs, grid);
        size_t n_lines = 0;
        for (const PromptColumn& one : all)
            if (one.lines) n_lines = std::max(n_lines, one.lines->size());
        least_ = grid.least;
        farthest_ = grid.farthest;
        ImGui::Dummy({width, labels + grid.line * static_cast<float>(n_lines)});
        place_.keep(all.front().lines, all.front().run, grid.line, ImGui::GetWindowHeight() - labels,
                    context.session.cursor().first_token);
        scroll_to_selection(context, all, grid, labels);
        const auto [column, token] = draw_texts(context, all, grid);
        ImGui::PopFont();
        if (!runs.empty()) draw_labels(context, all, grid, labels);
        draw_menu(context);
        const RunKey selected = context.session.cursor().run;
        const RunKey run = column ? column->run : selected.document < 0 ? all.front().run : selected;
        take_keys(context, run, column ? token : context.session.cursor().first_token);
        ImGui::EndChild();
    }

    /// Draws the columns. Returns the column under the mouse, or nullptr, and the token under the mouse.
    std::pair<const PromptColumn*, int64_t> draw_texts(Context& context, const std::vector<PromptColumn>& all,
                                                       const PromptGrid& grid) {
        if (!ImGui::IsMouseDown(ImGuiMouseButton_Left) && !ImGui::IsMouseReleased(ImGuiMouseButton_Left))
            drag_token_ = -1;
        const float left = ImGui::GetWindowPos().x;
        const float right = left + ImGui::GetWindowWidth();
        ImDrawList* list = ImGui::GetWindowDrawList();
        list->PushClipRect({left, grid.top}, {right, grid.bottom}, true);
        std::pair<const PromptColumn*, int64_t> under_mouse{nullptr, -1};
        for (const PromptColumn& one : all) {
            if (one.x > right || one.x + grid.column < left) continue;
            draw_prompt_column(context, one, grid, search_);
            const int64_t over = token_under_mouse(one, grid);
            if (over < 0) continue;
            under_mouse = {&one, over};
            take_mouse(context, one, over);
        }
        list->PopClipRect();
        // The button may also be released outside the text.
        if (ImGui::IsMouseReleased(ImGuiMouseButton_Left) && drag_token_ >= 0 && dragged_.has_tokens()) {
            context.session.selection.set(dragged_);
            seen_ = std::exchange(dragged_, {});
        }
        return under_mouse;
    }

    void draw_labels(Context& context, const std::vector<PromptColumn>& all, const PromptGrid& grid,
                     float height) const {
        ImDrawList* list = ImGui::GetWindowDrawList();
        const ImVec2 at = ImGui::GetWindowPos();
        list->AddRectFilled(at, {at.x + ImGui::GetWindowWidth(), at.y + height}, packed(context.theme.panel));
        const float side = 0.65f * ImGui::GetFontSize();
        for (const PromptColumn& one : all) {
            ImGui::PushID(one.run.text().c_str());
            const RunLook look = context.session.look(one.run);
            ImGui::SetCursorScreenPos({one.x, at.y});
            ImGui::SetNextItemAllowOverlap();  // for the badge that is drawn over this item
            if (ImGui::InvisibleButton("run", {grid.column - ImGui::GetFontSize(), height}))
                context.session.selection.select_run(one.run);
            item_tooltip(one.error.empty() ? full_label_for_tooltip(look) : one.error);
            const float top = at.y + (ImGui::GetFontSize() - side) / 2;
            draw_run_marker(context.theme, look.style, {one.x, top}, side, list);
            const bool is_selected = one.run == context.session.cursor().run;
            if (is_selected) ImGui::PushFont(context.fonts.bold, 0);
            list->PushClipRect({one.x, at.y}, {one.x + grid.column - side, at.y + height}, true);
            const ImVec2 begin{one.x + 1.6f * side, at.y};
            const std::string label = label_of(context, look, grid.column - 2.6f * side);
            list->AddText(begin, packed(one.error.empty() ? context.theme.ink : context.theme.error), label.c_str());
            draw_badges_over_text(context, label, begin);
            list->PopClipRect();
            if (is_selected) ImGui::PopFont();
            ImGui::PopID();
        }
    }

    std::string label_of(const Context& context, const RunLook& look, float width) const {
        const auto both = subtracted(context.session);
        return both ? fmt::format("{} − {}", look.run, context.session.look(both->second).run)
                    : label_that_fits(look, width);
    }

    std::vector<RunKey> told_runs(const Session& session) const {
        const auto both = subtracted(session);
        return both ? std::vector{both->first, both->second} : columns(session);
    }

    bool drags(const RunKey& run) const { return drag_token_ >= 0 && drag_run_ == run; }

    void take_mouse(Context& context, const PromptColumn& one, int64_t token) {
        Session& session = context.session;
        Cursor over = session.cursor();
        if (over.run.document != one.run.document || over.run.prompt != one.run.prompt) over = {};
        if (one.run.valid()) over.run = one.run;
        if (!over.run.valid()) over.run = {one.run.document, one.run.prompt, {}};
        Cursor next = over;
        over.first_token = over.last_token = token;
        session.set_hover(over);
        if (drags(one.run) && token != drag_token_) {
            over.first_token = next.first_token = std::min(drag_token_, token);
            over.last_token = next.last_token = std::max(drag_token_, token);
            session.set_hover(over);
            dragged_ = next;
        } else if (drags(one.run)) {
            dragged_ = {};  // the mouse is back at the first token
        }
        if (ImGui::IsMouseClicked(ImGuiMouseButton_Left) && over.run.valid()) {
            dragged_ = {};
            drag_run_ = one.run;
            drag_token_ = token;
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
        if (!ImGui::IsPopupOpen("token menu")) draw_token_tooltip(context, one, told_runs(session), token);
    }

    static void unpin_all(Document& document) {
        document.pins[document.prompt].clear();
        document.annotations_changed = true;
    }

    void draw_menu(Context& context) {
        if (!ImGui::BeginPopup("token menu")) return;
        Document* document = context.session.document(menu_document_);
        const auto prompt = document ? prompt_text(context.session, *document) : nullptr;
        const auto t = static_cast<size_t>(menu_token_);
        if (!prompt || t >= prompt->tokens.size()) {
            ImGui::CloseCurrentPopup();
        } else {
            const Cursor selected = context.session.cursor();
            const bool in_span = selected.run.document == menu_document_ && selected.contains(menu_token_);
            const auto first = in_span ? static_cast<size_t>(selected.first_token) : t;
            const auto last = in_span ? static_cast<size_t>(selected.last_token) : t;
            const std::string text(whole_characters_of_tokens(*prompt, first, last));
            auto& pins = document->pins[document->prompt];
            if (ImGui::MenuItem("Pin token", "P", pins.contains(menu_token_))) document->toggle_pin(menu_token_);
            if (ImGui::MenuItem("Unpin all tokens", nullptr, false, !pins.empty())) unpin_all(*document);
            ImGui::Separator();
            if (ImGui::MenuItem("Mark this text")) context.session.mark = text;
            if (ImGui::MenuItem("Search for this text")) context.session.search = text;
            if (ImGui::MenuItem("Copy text")) ImGui::SetClipboardText(text.c_str());
            ImGui::Separator();
            draw_figure_menu_items(context, *this, "prompt", figure(context.session));
        }
        ImGui::EndPopup();
    }

    static void take_keys(Context& context, const RunKey& run, int64_t token) {
        if (!context.actions.takes_single_keys() || !ImGui::IsWindowFocused(ImGuiFocusedFlags_RootAndChildWindows))
            return;
        if (!ImGui::IsKeyPressed(ImGuiKey_P, false) || ImGui::GetIO().KeyCtrl) return;
        Document* document = context.session.document(run);
        if (token >= 0 && document && document->prompt == run.prompt) document->toggle_pin(token);
    }

    void scroll_to_selection(Context& context, const std::vector<PromptColumn>& all, const PromptGrid& grid,
                             float labels) {
        const Cursor selected = context.session.cursor();
        const Cursor hover = context.session.hover();
        int64_t token = -1;
        RunKey run;
        const bool is_asked_for =
            std::exchange(seen_asked_, context.session.selection.n_asked()) != context.session.selection.n_asked();
        if (selected.first_token != seen_.first_token || selected.last_token != seen_.last_token || is_asked_for) {
            token = selected.first_token;
            run = selected.run;
        } else if (context.session.hover_leads() && hover.has_tokens() && !ImGui::IsWindowHovered() &&
                   hover.first_token != hovered_) {
            token = hover.first_token;
            run = hover.run;
        }
        hovered_ = hover.first_token;
        if (wanted_token_ >= 0) {
            token = wanted_token_;
            run = all.front().run;
            wanted_token_ = -1;
        }
        const PromptColumn& first_column = all.front();
        // In the first frame, the selection takes precedence over the mark.
        const bool is_new = context.session.mark != seen_mark_.value_or("");
        if (!seen_mark_ && (!is_new || selected.has_tokens()))
            seen_mark_ = context.session.mark;
        else if (is_new && (!first_column.marks.empty() || context.session.mark.empty())) {
            if (!first_column.marks.empty() && wanted_token_ < 0) {
                token = first_column.marks.front().first;
                run = first_column.run;
            }
            if (first_column.lines) seen_mark_ = context.session.mark;
        }
        const bool is_run_placed = follow_run(selected, all, grid, token < 0);
        show_new_column(all, grid);
        bool is_placed = token < 0 && is_run_placed;
        for (const PromptColumn& one : all) {
            if (token < 0 || one.run.document != run.document || one.run.prompt != run.prompt || !one.lines) continue;
            is_placed = true;
            const float y = grid.line * static_cast<float>(one.lines->line_of(token));
            const float room = ImGui::GetWindowHeight() - labels;
            const float top = ImGui::GetScrollY();
            if (y < top || y + 2 * grid.line > top + room) ImGui::SetScrollY(std::max(y - room / 2, 0.0f));
            place_.let_go();
            break;
        }
        if (is_placed) seen_ = selected;
    }

    static void scroll_to_column(const PromptColumn& one, const PromptGrid& grid) {
        const float x = one.x - grid.origin.x;
        if (x < ImGui::GetScrollX() || x + grid.column > ImGui::GetScrollX() + ImGui::GetWindowWidth())
            ImGui::SetScrollX(x);
    }

    void show_new_column(const std::vector<PromptColumn>& all, const PromptGrid& grid) {
        std::set<RunKey> runs;
        const PromptColumn* added = nullptr;
        for (const PromptColumn& one : all) {
            runs.insert(one.run);
            if (!columns_.contains(one.run)) added = &one;
        }
        if (added && runs.size() == columns_.size() + 1 && !columns_.empty()) scroll_to_column(*added, grid);
        columns_ = std::move(runs);
    }

    /// Scrolls to the column of a run that was selected in another view. With `rows`, also scrolls up to a column that
    /// ends above the visible part. Returns false until the column's lines are known.
    bool follow_run(const Cursor& selected, const std::vector<PromptColumn>& all, const PromptGrid& grid, bool rows) {
        // In the first frame, the text starts at its left edge unless a token is selected.
        if (selected.run == seen_.run || (!seen_.run.valid() && !selected.has_tokens())) return true;
        for (const PromptColumn& one : all) {
            if (one.run != selected.run) continue;
            scroll_to_column(one, grid);
            if (!rows) return true;
            if (!one.lines) return !one.error.empty();
            if (ImGui::GetScrollY() + grid.line > grid.line * static_cast<float>(one.lines->size())) {
                ImGui::SetScrollY(0);
                place_.let_go();
            }
        }
        return true;
    }

    Color color_ = Color::layers;
    mutable std::pair<std::shared_ptr<const TokenRetentionCounts>, std::shared_ptr<const TokenRetentionCounts>>
        farthest_pair_;
    mutable double farthest_seen_ = 1;  ///< largest difference of A and B
    bool selected_only_ = false;
    double least_ = 1;     ///< see PromptGrid::least
    double farthest_ = 1;  ///< see PromptGrid::farthest
    bool is_low_ = false;  ///< whether the view is so low that it shows only the text
    PromptSearch search_;
    SpanAnswers answers_;
    ReadingPlace place_;
    TaskSlot<PromptLines> lines_;
    std::set<RunKey> columns_;              ///< runs that had columns in the last frame
    Cursor seen_;                           ///< last selection that was scrolled to
    int seen_asked_ = 0;                    ///< Selection::n_asked() at the time of `seen_`
    std::optional<std::string> seen_mark_;  ///< last mark that was scrolled to, or nullopt
    int64_t hovered_ = -1;
    int64_t wanted_token_ = -1;
    Cursor dragged_;           ///< selected span while dragging; without tokens while only one token is selected
    RunKey drag_run_;          ///< run in whose column the button was pressed
    int64_t drag_token_ = -1;  ///< token on which the button was pressed, or −1
    int64_t menu_token_ = -1;
    int menu_document_ = -1;
};

}  // namespace

ViewKind prompt_view() {
    return {"prompt",     "Prompt",      "The prompt's text, each token colored by how many layers or heads keep it",
            Dock::center, Topic::tokens, make_view<PromptView>,
            R"(
55.9999.222.7777
................
999.33333.44.888
................
66666.1111.99999
................
33.777.5555.22.9
................)"};
}

}  // namespace kvscope::gui
