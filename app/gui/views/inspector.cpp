#include <fmt/format.h>
#include <fmt/ranges.h>
#include <imgui.h>
#include <misc/cpp/imgui_stdlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "analysis/table_format.h"
#include "analysis/token_report.h"
#include "app/gui/figure_menu.h"
#include "app/gui/joined_tokens.h"
#include "app/gui/measures.h"
#include "app/gui/prompt_text.h"
#include "app/gui/run_label.h"
#include "app/gui/shaped_text.h"
#include "app/gui/token_tooltip.h"
#include "app/gui/view.h"

namespace kvscope::gui {
namespace {

using analysis::Border;
using analysis::Table;
using analysis::TokenDecision;
using analysis::TokenReport;

constexpr size_t border_entries = 5;

/// What is asked: one token in one run.
struct Question {
    RunKey run;
    int64_t token = -1;
    bool is_hover = false;
};

/// Significant digits that tell two numbers apart: 3, or as many more as it takes.
int digits_apart(double a, double b) {
    for (int digits = 3; digits < 12; ++digits) {
        if (a == b || fmt::format("{:.{}g}", a, digits) != fmt::format("{:.{}g}", b, digits)) return digits;
    }
    return 12;
}

std::string count(size_t value) { return analysis::format_count(static_cast<int64_t>(value)); }

/// score / cut-off of a head; NaN where one of them is missing or the quotient says nothing.
double ratio(const TokenDecision& d) {
    return d.candidate && d.cut_off > 0 && d.score >= 0 ? d.score / d.cut_off : TokenDecision::nothing;
}

/// How many ranks a candidate is from being kept; 0 and below: it is kept.
double ranks_missing(const TokenDecision& d) {
    if (!d.candidate) return TokenDecision::nothing;
    return static_cast<double>(d.rank) - static_cast<double>(d.n_candidates_kept);
}

struct Place {
    int layer = -1;
    int row = -1;
};

/// Where a token came nearest to being kept, or, once kept, was kept by the smallest margin.
Place nearest(const TokenReport& report, int only_layer = -1) {
    Place best;
    double least = 0;
    for (size_t layer = 0; layer < report.n_layers; ++layer) {
        if (only_layer >= 0 && static_cast<int>(layer) != only_layer) continue;
        for (size_t row = 0; row < report.n_rows; ++row) {
            const double missing = ranks_missing(report.at(layer, row));
            const double distance = missing > 0 ? missing : 1e9 - missing;  // heads that drop it come first
            if (std::isnan(missing) || (best.layer >= 0 && distance >= least)) continue;
            least = distance;
            best = {static_cast<int>(layer), static_cast<int>(row)};
        }
    }
    if (best.layer < 0) best = {std::max(only_layer, 0), 0};
    return best;
}

/// "Why was this token dropped?": score, rank and cut-off of a token in every head, and who stands at the border.
class InspectorView : public View {
 public:
    void draw(Context& context) override {
        Session& session = context.session;
        for (Table& each : tables_) each.rows.clear();
        // An open menu keeps the table that it was opened on.
        const bool is_open = ImGui::IsPopupOpen("figure menu");
        if (!is_open && ImGui::IsWindowHovered(ImGuiHoveredFlags_RootAndChildWindows)) pointed_at_ = 0;
        const Question asked = question(session);
        if (asked.token < 0) {
            draw_nothing(context,
                         session.documents().empty()
                             ? "Open a trace or run the demo; then click a token to see why it was kept or dropped."
                             : "Click a token in Prompt or Retention to see why it was kept or dropped.");
            if (Document* focus = session.focus(); focus && has_notes(*focus)) {
                ImGui::SetCursorPos(ImGui::GetCursorStartPos());
                draw_notes(context, *focus);
            }
            return;
        }
        Document& document = *session.document(asked.run);
        const auto prompt = prompt_text(session, document);
        if (!prompt) {
            draw_nothing(context, "reading the prompt …");
            return;
        }
        if (static_cast<size_t>(asked.token) >= prompt->tokens.size()) {
            draw_nothing(context, fmt::format("This prompt ends before token {}: click another.", asked.token));
            return;
        }
        draw_token(context, *prompt, asked);
        draw_note_field(context, document, asked);
        if (asked.token >= document.reader()->prompt(asked.run.prompt).visible_tokens()) {
            ImGui::TextWrapped(
                "Policies did not see this token: it belongs to the question, whose entries are kept whole and counted "
                "in no budget.");
            return;
        }
        draw_runs(context, document, *prompt, asked);
        draw_report(context, document, *prompt, asked);
        if (const auto shown = table()) draw_table_menu(context, *this, "inspector", *shown);
    }

    /// The one under the mouse: the heads, the border, else where the token is kept.
    std::optional<Table> table() const override {
        const Table& pointed_at = tables_[pointed_at_];
        const Table& shown = pointed_at.rows.empty() ? tables_[0] : pointed_at;
        return shown.rows.empty() ? std::nullopt : std::optional(shown);
    }

    std::vector<std::pair<std::string, std::string>> help() const override {
        return {{"a run's line", "select that run"},
                {"the small charts", "click a layer to look into it"},
                {"a head's line", "who won and who lost at its cut-off"},
                {"a token at the border", "select it"},
                {"right click, Ctrl+Shift+E", "copy or export the table under the mouse"}};
    }

 private:
    /// The selected token, else the one under the mouse; in the selected run, else the first that is shown.
    static Question question(const Session& session) {
        const auto usable = [&](const RunKey& key) {
            return session.exists(key) && session.attributes(key).status == "complete";
        };
        for (const Cursor* cursor : {&session.cursor(), &session.hover()}) {
            if (!cursor->has_tokens()) continue;
            Question asked{cursor->run, cursor->first_token, cursor == &session.hover()};
            if (!usable(asked.run)) {
                for (const RunKey& key : session.visible_runs(true)) {
                    if (cursor->run.document >= 0 && key.document != cursor->run.document) continue;
                    asked.run = key;
                    break;
                }
            }
            if (usable(asked.run) && session.document(asked.run)->prompt == asked.run.prompt) return asked;
        }
        return {};
    }

    static void draw_token(const Context& context, const PromptText& prompt, const Question& asked) {
        const Cursor& selected = context.session.cursor();
        const bool of_several = !asked.is_hover && selected.last_token > selected.first_token;
        const auto t = static_cast<size_t>(asked.token);
        ImGui::PushFont(context.fonts.mono, 1.35f * ImGui::GetStyle().FontSizeBase);
        text_item(prompt.shown[t]);
        ImGui::SameLine();
        draw_shared_character(prompt, t);
        ImGui::NewLine();
        ImGui::PopFont();
        ImGui::TextDisabled(
            "token %s%s · id %d%s", count(t).c_str(),
            of_several
                ? fmt::format(", first of {}–{}", count(selected.first_token), count(selected.last_token)).c_str()
                : "",
            prompt.ids[t], asked.is_hover ? " · under the mouse" : "");
        // A few words of context, so that a token is found again in the text.
        const size_t first = t < 6 ? 0 : t - 6;
        const size_t last = std::min(t + 7, prompt.shown.size()) - 1;
        bool is_joined = false;
        for (size_t i = first; i <= last; ++i) is_joined = is_joined || is_set_as_one(prompt, static_cast<uint32_t>(i));
        ImGui::PushFont(context.fonts.mono, 0);
        if (is_joined)
            draw_joined_context(context, prompt, first, t, last);
        else
            draw_context(context, prompt, first, t, last);
        ImGui::PopFont();
    }

    static void draw_context(const Context& context, const PromptText& prompt, size_t first, size_t token,
                             size_t last) {
        const float right = ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x;
        for (size_t i = first; i <= last; ++i) {
            if (i > first) {
                ImGui::SameLine(0, 0);
                if (ImGui::GetCursorPosX() + text_width(prompt.shown[i]) > right) ImGui::NewLine();
            }
            ImGui::PushStyleColor(ImGuiCol_Text, i == token ? context.theme.accent : context.theme.ink_quiet);
            text_item(prompt.shown[i]);
            ImGui::PopStyleColor();
        }
    }

    /// In one line, of as many tokens as find room in it.
    static void draw_joined_context(const Context& context, const PromptText& prompt, size_t first, size_t token,
                                    size_t last) {
        const float room = ImGui::GetContentRegionAvail().x;
        JoinedTokens joined;
        std::span<const float> edges;
        float advance = 0;
        while (true) {
            joined = join_tokens(prompt, static_cast<uint32_t>(first), static_cast<uint32_t>(last));
            edges = byte_edges(joined.text);
            advance = *std::max_element(edges.begin(), edges.end());
            if (advance <= room || first == last) break;
            if (last > token) --last;
            if (first < token) ++first;
        }
        const size_t begin = token > first ? joined.ends[token - first - 1] : 0;
        const auto [low, high] = reach_of_bytes(edges, begin, joined.ends[token - first]);
        const ImVec2 at = ImGui::GetCursorScreenPos();
        ImDrawList* list = ImGui::GetWindowDrawList();
        const ImU32 quiet = packed(context.theme.ink_quiet);
        draw_text_between(list, at, quiet, joined.text, 0, low, 1);
        draw_text_between(list, at, packed(context.theme.accent), joined.text, low, high, 1);
        draw_text_between(list, at, quiet, joined.text, high, advance, 1);
        ImGui::Dummy({advance, ImGui::GetTextLineHeight()});
    }

    // ---- notes -----------------------------------------------------------------------------------------------------

    /// The note on the selected tokens; it is taken over when the field is left or Enter is pressed.
    void draw_note_field(Context& context, Document& document, const Question& asked) {
        const Cursor& selected = context.session.cursor();
        const bool is_one = asked.is_hover || selected.last_token <= selected.first_token;
        const int64_t first = asked.token;
        const int64_t last = is_one ? first : selected.last_token;
        if (!asked.is_hover) {
            const Note* note = document.note_on(first, last);
            if (!is_writing_) note_text_ = note ? note->text : std::string();
            ImGui::PushID(fmt::format("{} {} {} {}", document.id(), document.prompt, first, last).c_str());
            ImGui::SetNextItemWidth(-FLT_MIN);
            ImGui::InputTextWithHint("##note", is_one ? "note on this token" : "note on these tokens", &note_text_);
            is_writing_ = ImGui::IsItemActive();
            if (ImGui::IsItemDeactivatedAfterEdit()) document.write_note(first, last, note_text_);
            ImGui::SetItemTooltip("kept in a file beside the trace; an empty one is taken away");
            ImGui::PopID();
        }
        if (has_notes(document)) draw_notes(context, document);
    }

    static bool has_notes(const Document& document) {
        return std::any_of(document.notes.begin(), document.notes.end(),
                           [&](const Note& note) { return note.prompt == document.prompt; });
    }

    static void draw_notes(Context& context, const Document& document) {
        if (!ImGui::TreeNodeEx("Notes on this prompt")) return;
        for (const Note& note : document.notes) {
            if (note.prompt != document.prompt) continue;
            ImGui::PushID(&note);
            const std::string where = note.first_token == note.last_token
                                          ? count(note.first_token)
                                          : fmt::format("{}–{}", count(note.first_token), count(note.last_token));
            if (ImGui::Selectable(fmt::format("{}  {}", where, note.text).c_str())) {
                Cursor cursor = context.session.cursor();
                if (cursor.run.document != document.id() || cursor.run.prompt != document.prompt)
                    cursor.run = {document.id(), document.prompt, -1};
                cursor.first_token = note.first_token;
                cursor.last_token = note.last_token;
                context.session.selection.set(cursor);
            }
            ImGui::SetItemTooltip("%s", note.text.c_str());
            ImGui::PopID();
        }
        ImGui::TreePop();
    }

    // ---- by run ----------------------------------------------------------------------------------------------------

    /// A run and what it did with the token.
    struct RunReport {
        RunKey run;
        analysis::SpanReport report;
    };

    /// The document's prompt and, of other open traces, those that have the same tokens.
    static std::vector<const Document*> with_same_tokens(Session& session, const Document& document,
                                                         const PromptText& prompt) {
        std::vector<const Document*> same;
        for (const auto& other : session.documents()) {
            if (other.get() == &document) {
                same.push_back(&document);
                continue;
            }
            if (!other->reader()->has_model() || other->prompt >= other->reader()->n_prompts()) continue;
            const auto text = prompt_text(session, *other);
            if (text && text->ids == prompt.ids) same.push_back(other.get());
        }
        return same;
    }

    /// The compressed runs of one prompt that are shown, and the one asked about.
    void add_reports(Session& session, const Document& document, const Question& asked,
                     std::vector<RunReport>& reports) const {
        using Reports = std::vector<analysis::SpanReport>;
        const trace::Reader& reader = *document.reader();
        if (asked.token >= reader.prompt(document.prompt).visible_tokens()) return;
        std::string stamp = fmt::format("{} {} {}", document.stamp(), document.prompt, asked.token);
        for (int run = document.file()->n_runs(document.prompt); run < reader.n_runs(document.prompt); ++run)
            stamp += " " + document.run_stamp(document.prompt, run);
        const auto answer =
            session.tasks.ask<Reports>(fmt::format("{} {}", slot("runs"), document.id()), stamp,
                                       [of = document.reader(), index = document.prompt, token = asked.token] {
                                           return analysis::span_report(*of, index, token, token);
                                       });
        if (!answer.value) return;
        for (const auto& report : *answer.value) {
            const RunKey key{document.id(), document.prompt, report.run};
            if (!session.exists(key) || session.attributes(key).policy == "full") continue;
            if (session.is_visible(key) || key == asked.run) reports.push_back({key, report});
        }
    }

    void draw_runs(Context& context, const Document& document, const PromptText& prompt, const Question& asked) {
        std::vector<RunReport> reports;
        for (const Document* each : with_same_tokens(context.session, document, prompt))
            add_reports(context.session, *each, asked, reports);
        if (reports.empty()) return;
        const auto n_keeping = std::count_if(reports.begin(), reports.end(),
                                             [](const RunReport& each) { return each.report.n_keeping_any > 0; });
        ImGui::SeparatorText(fmt::format("kept somewhere by {} of {} runs", n_keeping, reports.size()).c_str());
        const float line = ImGui::GetTextLineHeightWithSpacing();
        const float most = std::max(0.28f * ImGui::GetWindowHeight(), 4 * line);
        ImGui::BeginChild("runs", {0, std::min(static_cast<float>(reports.size()) * line + 4, most)});
        for (const RunReport& each : reports) draw_run(context, each.run, each.report, asked);
        ImGui::EndChild();
        tables_[0] = table_of_runs(context.session, reports, prompt, asked.token);
    }

    static void draw_run(Context& context, const RunKey& key, const analysis::SpanReport& report,
                         const Question& asked) {
        Session& session = context.session;
        const RunLook look = session.look(key);
        ImGui::PushID(key.document);
        ImGui::PushID(key.run);
        const float side = 0.65f * ImGui::GetFontSize();
        const ImVec2 at = ImGui::GetCursorScreenPos();
        const ImU32 color = packed(on_ground(look.style.color, context.theme));
        ImDrawList* list = ImGui::GetWindowDrawList();
        const ImVec2 from{at.x, at.y + (ImGui::GetTextLineHeight() - side) / 2};
        const ImVec2 to{from.x + side, from.y + side};
        report.n_keeping_any > 0 ? list->AddRectFilled(from, to, color) : list->AddRect(from, to, color);
        ImGui::Dummy({side, side});
        ImGui::SameLine();
        const bool is_narrow = ImGui::GetContentRegionAvail().x < 17 * ImGui::GetFontSize();
        const std::string heads = report.n_keeping_any == 0 ? "dropped"
                                  : is_narrow ? fmt::format("{}/{}", report.n_keeping_any, report.n_places)
                                              : fmt::format("{} of {} heads", report.n_keeping_any, report.n_places);
        const float label_end = ImGui::GetContentRegionAvail().x -
                                ImGui::CalcTextSize(is_narrow ? "dropped" : "000 of 000 heads").x -
                                ImGui::GetStyle().ItemSpacing.x;
        if (ImGui::Selectable(widget_label_that_fits(look, label_end).c_str(), key == asked.run,
                              ImGuiSelectableFlags_AllowOverlap, {std::max(label_end, 1.0f), 0}))
            session.select_run(key);
        if (ImGui::IsItemHovered()) {
            Cursor over = session.cursor();
            over.run = key;
            over.first_token = over.last_token = asked.token;
            if (!asked.is_hover) session.set_hover(over);
            ImGui::SetTooltip("%s%s%s", look.trace.c_str(), look.trace.empty() ? "" : ": ", report.sentence.c_str());
        }
        ImGui::SameLine();
        const float width = ImGui::CalcTextSize(heads.c_str()).x;
        ImGui::SetCursorPosX(ImGui::GetCursorPosX() + std::max(ImGui::GetContentRegionAvail().x - width, 0.0f));
        ImGui::TextDisabled("%s", heads.c_str());
        ImGui::PopID();
        ImGui::PopID();
    }

    // ---- one run ---------------------------------------------------------------------------------------------------

    void draw_report(Context& context, const Document& document, const PromptText& prompt, const Question& asked) {
        Session& session = context.session;
        const RunLook look = session.look(asked.run);
        ImGui::SeparatorText(
            label_that_fits(look, ImGui::GetContentRegionAvail().x - 3 * ImGui::GetFontSize()).c_str());
        if (!look.trace.empty()) ImGui::SetItemTooltip("%s", look.label.c_str());
        const auto answer = session.tasks.ask<TokenReport>(
            slot("report"), fmt::format("{} {}", session.stamp(asked.run), asked.token),
            [reader = document.reader(), asked] {
                return analysis::token_report(*reader, asked.run.prompt, asked.run.run, asked.token);
            });
        if (!answer.error.empty()) {
            draw_nothing(context, answer.error);
            return;
        }
        if (!answer.value) {
            ImGui::TextDisabled("reading its scores …");
            return;
        }
        const TokenReport& report = *answer.value;
        const ImU32 color = packed(on_ground(look.style.color, context.theme));
        const std::string measure = score_definition(session.attributes(asked.run).policy);
        draw_sparklines(context, report, color, measure);
        int layer = session.cursor().layer;
        const bool is_chosen = layer >= 0 && static_cast<size_t>(layer) < report.n_layers;
        if (!is_chosen) layer = nearest(report).layer;
        Place place = nearest(report, layer);
        const int row = selected_row(session, document, report, layer);
        if (row >= 0) place.row = row;

        ImGui::Spacing();
        ImGui::PushFont(context.fonts.bold, 0);
        ImGui::Text("layer %d", layer);
        ImGui::PopFont();
        ImGui::SameLine();
        ImGui::TextDisabled("%s", is_chosen           ? "as selected"
                                  : report.has_scores ? "where it came nearest to its cut-off"
                                                      : "");
        const float heads_top = ImGui::GetCursorScreenPos().y;
        draw_heads(context, document, report, layer, place.row, color, measure);
        point_at(1, heads_top);
        tables_[1] = table_of_heads(report, static_cast<size_t>(layer), look.label);
        ImGui::PushTextWrapPos(0);
        ImGui::TextUnformatted(report.sentence(static_cast<size_t>(layer), static_cast<size_t>(place.row)).c_str());
        ImGui::PopTextWrapPos();
        if (report.has_scores) draw_border(context, document, prompt, asked, {layer, place.row});
    }

    static int selected_row(const Session& session, const Document& document, const TokenReport& report, int layer) {
        const Cursor& cursor = session.cursor();
        if (cursor.layer != layer || cursor.kv_head < 0) return -1;
        const auto& model = document.reader()->model();
        int row = cursor.kv_head;
        if (report.query_heads) {
            const auto group =
                static_cast<int>(std::max<int64_t>(model.n_heads / std::max<int64_t>(model.n_kv_heads, 1), 1));
            row = cursor.query_head >= 0 ? cursor.query_head : cursor.kv_head * group;
        }
        return row < static_cast<int>(report.n_rows) ? row : -1;
    }

    /// One chart: a value per layer. @param value in [0, 1] of the chart's height, NaN for nothing
    template <class Value, class Text>
    static void sparkline(Context& context, const char* id, const std::string& title, size_t n, ImU32 color,
                          float reference, Value value, Text text) {
        Session& session = context.session;
        ImGui::TextDisabled("%s", title.c_str());
        const float width = std::max(ImGui::GetContentRegionAvail().x, 20.0f);
        const float height = 2.6f * ImGui::GetFontSize();
        const ImVec2 at = ImGui::GetCursorScreenPos();
        ImGui::InvisibleButton(id, {width, height});
        ImDrawList* list = ImGui::GetWindowDrawList();
        list->AddRectFilled(at, {at.x + width, at.y + height}, packed(context.theme.ground));
        const float each = width / static_cast<float>(n);
        const auto band = [&](int layer, ImU32 of) {
            if (layer < 0 || static_cast<size_t>(layer) >= n) return;
            const float x = at.x + each * static_cast<float>(layer);
            list->AddRectFilled({x, at.y}, {x + each, at.y + height}, of);
        };
        band(session.cursor().layer, packed(context.theme.accent, 0.3f));
        band(session.hover().layer, packed(context.theme.hover, 0.15f));
        for (size_t layer = 0; layer < n; ++layer) {
            const float share = value(layer);
            if (std::isnan(share)) continue;
            const float x = at.x + each * static_cast<float>(layer);
            const float top = at.y + height * (1 - std::clamp(share, 0.0f, 1.0f));
            list->AddRectFilled({x, std::min(top, at.y + height - 1)}, {x + std::max(each - 1, 1.0f), at.y + height},
                                color);
        }
        if (reference > 0) {
            const float y = at.y + height * (1 - reference);
            list->AddLine({at.x, y}, {at.x + width, y}, packed(context.theme.ink_quiet));
        }
        if (!ImGui::IsItemHovered()) return;
        const auto layer =
            static_cast<size_t>(std::clamp((ImGui::GetMousePos().x - at.x) / each, 0.0f, static_cast<float>(n - 1)));
        Cursor over = session.cursor();
        over.layer = static_cast<int>(layer);
        over.kv_head = over.query_head = -1;
        session.set_hover(over);
        if (ImGui::IsMouseClicked(ImGuiMouseButton_Left)) session.select_layer(static_cast<int>(layer));
        ImGui::SetTooltip("layer %zu: %s", layer, text(layer).c_str());
    }

    static void draw_sparklines(Context& context, const TokenReport& report, ImU32 color, const std::string& measure) {
        const auto kept_heads = [&](size_t layer) {
            size_t n = 0;
            for (size_t r = 0; r < report.n_rows; ++r) n += report.at(layer, r).kept;
            return n;
        };
        sparkline(
            context, "##inspector kept", fmt::format("heads that keep it, of {}, by layer →", report.n_rows),
            report.n_layers, color, 0,
            [&](size_t layer) { return static_cast<float>(kept_heads(layer)) / static_cast<float>(report.n_rows); },
            [&](size_t layer) {
                return fmt::format("kept by {} of {} heads\n{}", kept_heads(layer), report.n_rows,
                                   measure_definition("retention"));
            });
        if (!report.has_scores) {
            ImGui::PushStyleColor(ImGuiCol_Text, context.theme.ink_quiet);
            ImGui::TextWrapped("no scores are stored: positions alone decide, or the trace leaves them out");
            ImGui::PopStyleColor();
            return;
        }
        const auto best = [&](size_t layer) {
            double most = TokenDecision::nothing;
            for (size_t r = 0; r < report.n_rows; ++r) {
                const double here = ratio(report.at(layer, r));
                if (!(most >= here)) most = here;
            }
            return most;
        };
        double low = 1;
        double high = 1;
        for (size_t layer = 0; layer < report.n_layers; ++layer) {
            const double here = best(layer);
            if (!(here > 0)) continue;
            low = std::min(low, here);
            high = std::max(high, here);
        }
        if (low == high) return;  // forced in everywhere
        // Logarithmic, since scores lie orders of magnitude apart; at most a factor of 1,000 either way.
        const double bottom = std::log(std::max(low, 1e-3)) - 0.05;
        const double top = std::log(std::min(high, 1e3)) + 0.05;
        const auto share = [&](double quotient) {
            return quotient > 0 ? static_cast<float>((std::log(quotient) - bottom) / (top - bottom)) : 0.0f;
        };
        sparkline(
            context, "##inspector scores", "score / cut-off of the best head (log)", report.n_layers,
            packed(context.theme.accent, 0.8f), share(1.0),
            [&](size_t layer) {
                const double here = best(layer);
                return std::isnan(here) ? std::numeric_limits<float>::quiet_NaN() : share(here);
            },
            [&](size_t layer) {
                const double here = best(layer);
                return std::isnan(here) ? std::string("not ranked")
                                        : fmt::format("best head has {:.4g} times the cut-off\n{}", here, measure);
            });
    }

    void draw_heads(Context& context, const Document& document, const TokenReport& report, int layer, int chosen,
                    ImU32 color, const std::string& measure) const {
        constexpr ImGuiTableFlags flags =
            ImGuiTableFlags_SizingStretchProp | ImGuiTableFlags_BordersInnerH | ImGuiTableFlags_ScrollY;
        const float line = ImGui::GetTextLineHeightWithSpacing();
        const float height = std::min(static_cast<float>(report.n_rows + 1) * (line + 2) + 4, 10 * line);
        ImGui::PushStyleVar(ImGuiStyleVar_CellPadding, ImVec2(ImGui::GetStyle().CellPadding.x / 2, 2));
        const bool is_drawn = ImGui::BeginTable("heads", 4, flags, {0, height});
        ImGui::PopStyleVar();
        if (!is_drawn) return;
        ImGui::TableSetupScrollFreeze(0, 1);
        ImGui::TableSetupColumn(report.query_heads ? "head" : "KV head");
        ImGui::TableSetupColumn("score");
        ImGui::TableSetupColumn("rank");
        ImGui::TableSetupColumn("cut-off");
        ImGui::TableHeadersRow();
        const auto& model = document.reader()->model();
        const auto group =
            static_cast<int>(std::max<int64_t>(model.n_heads / std::max<int64_t>(model.n_kv_heads, 1), 1));
        for (size_t r = 0; r < report.n_rows; ++r) {
            const TokenDecision& d = report.at(static_cast<size_t>(layer), r);
            const int row = static_cast<int>(r);
            ImGui::TableNextRow();
            ImGui::TableNextColumn();
            // A full square: kept.
            const float side = 0.65f * ImGui::GetFontSize();
            const ImVec2 at = ImGui::GetCursorScreenPos();
            if (ImGui::Selectable(fmt::format("##head {}", row).c_str(), row == chosen,
                                  ImGuiSelectableFlags_SpanAllColumns)) {
                report.query_heads ? context.session.select_head(layer, row / group, row)
                                   : context.session.select_head(layer, row);
            }
            ImGui::SetItemTooltip("%s\n%s", report.sentence(static_cast<size_t>(layer), r).c_str(), measure.c_str());
            ImDrawList* list = ImGui::GetWindowDrawList();
            const ImVec2 from{at.x + 0.2f * side, at.y + (ImGui::GetTextLineHeight() - side) / 2};
            const ImVec2 to{from.x + side, from.y + side};
            d.kept ? list->AddRectFilled(from, to, color) : list->AddRect(from, to, color);
            list->AddText({to.x + 0.6f * side, at.y}, packed(context.theme.ink), std::to_string(row).c_str());
            ImGui::PushFont(context.fonts.mono, 0.9f * ImGui::GetStyle().FontSizeBase);
            const int digits = digits_apart(d.score, d.cut_off);
            ImGui::TableNextColumn();
            ImGui::TextUnformatted(std::isnan(d.score) ? "–" : fmt::format("{:.{}g}", d.score, digits).c_str());
            ImGui::TableNextColumn();
            ImGui::TextUnformatted(d.candidate                       ? count(d.rank).c_str()
                                   : d.forced() && report.has_scores ? "forced in"
                                                                     : "–");
            ImGui::TableNextColumn();
            ImGui::TextUnformatted(std::isnan(d.cut_off) ? "–" : fmt::format("{:.{}g}", d.cut_off, digits).c_str());
            ImGui::PopFont();
        }
        ImGui::EndTable();
    }

    // ---- the border ------------------------------------------------------------------------------------------------

    void draw_border(Context& context, const Document& document, const PromptText& prompt, const Question& asked,
                     const Place& place) {
        const auto answer = context.session.tasks.ask<Border>(
            slot("border"), fmt::format("{} {} {}", context.session.stamp(asked.run), place.layer, place.row),
            [reader = document.reader(), run = asked.run, place] {
                return analysis::border(*reader, run.prompt, run.run, static_cast<size_t>(place.layer),
                                        static_cast<size_t>(place.row), border_entries);
            });
        if (!answer.value || (answer.value->kept.empty() && answer.value->dropped.empty())) return;
        const Border& at_border = *answer.value;
        ImGui::Spacing();
        const float top = ImGui::GetCursorScreenPos().y;
        ImGui::TextDisabled("at the border of head %d", place.row);
        constexpr ImGuiTableFlags flags = ImGuiTableFlags_SizingStretchProp;
        if (!ImGui::BeginTable("border", 4, flags)) return;
        ImGui::TableSetupColumn("rank");
        ImGui::TableSetupColumn("token");
        ImGui::TableSetupColumn("score");
        ImGui::TableSetupColumn("margin");
        ImGui::TableHeadersRow();
        const double cut_off = at_border.kept.empty() ? TokenDecision::nothing : at_border.kept.back().score;
        const double best_loser = at_border.dropped.empty() ? TokenDecision::nothing : at_border.dropped.front().score;
        const int digits = digits_apart(cut_off, best_loser);
        for (const auto& entry : at_border.kept) draw_entry(context, prompt, asked, entry, cut_off, digits, true);
        ImGui::TableNextRow(ImGuiTableRowFlags_None, 3);
        ImGui::TableSetBgColor(ImGuiTableBgTarget_RowBg0, packed(context.theme.accent, 0.7f));
        for (const auto& entry : at_border.dropped) draw_entry(context, prompt, asked, entry, cut_off, digits, false);
        ImGui::EndTable();
        point_at(2, top);
        tables_[2] = table_of_border(at_border, cut_off, prompt, place, context.session.look(asked.run).label);
    }

    /// What was drawn from `top` to here is what the mouse is over, where it is.
    void point_at(size_t table, float top) {
        if (ImGui::IsPopupOpen("figure menu") || !ImGui::IsWindowHovered(ImGuiHoveredFlags_RootAndChildWindows)) return;
        const float mouse = ImGui::GetMousePos().y;
        if (mouse >= top && mouse < ImGui::GetCursorScreenPos().y) pointed_at_ = table;
    }

    // ---- the tables, to copy and to export -------------------------------------------------------------------------

    static Table table_of_runs(const Session& session, const std::vector<RunReport>& reports, const PromptText& prompt,
                               int64_t token) {
        using analysis::ColumnType;
        Table table{"kept",
                    fmt::format("Where token {} ({}) is kept", token, prompt.tokens[static_cast<size_t>(token)]),
                    {},
                    {}};
        const bool several = session.documents().size() > 1;
        if (several) table.columns.push_back({"trace", "Trace", ""});
        table.columns.insert(table.columns.end(), {{"run", "Run", ""},
                                                   {"heads_keeping", "Heads that keep it", "", ColumnType::integer},
                                                   {"heads", "Heads", "", ColumnType::integer},
                                                   {"layers", "Layers that keep it", ""}});
        for (const auto& [run, report] : reports) {
            const RunLook look = session.look(run);
            analysis::Row row;
            if (several) row.cells.emplace_back(look.trace);
            row.cells.insert(row.cells.end(), {look.run, static_cast<int64_t>(report.n_keeping_any),
                                               static_cast<int64_t>(report.n_places),
                                               fmt::format("{}", fmt::join(report.layers_keeping_all, " "))});
            table.rows.push_back(std::move(row));
        }
        return table;
    }

    static Table table_of_heads(const TokenReport& report, size_t layer, const std::string& run) {
        using analysis::ColumnType;
        Table table{"heads",
                    fmt::format("Token {} in layer {} of {}", report.token, layer, run),
                    {{"head", report.query_heads ? "Query head" : "KV head", "", ColumnType::integer},
                     {"kept", "Kept", ""},
                     {"score", "Score", "", ColumnType::real, 6},
                     {"rank", "Rank", "", ColumnType::integer},
                     {"candidates", "Candidates", "", ColumnType::integer},
                     {"cut_off", "Cut-off", "", ColumnType::real, 6}},
                    {}};
        const auto real = [](double value) { return std::isnan(value) ? analysis::Cell() : analysis::Cell(value); };
        for (size_t r = 0; r < report.n_rows; ++r) {
            const TokenDecision& d = report.at(layer, r);
            const auto if_ranked = [&](size_t value) {
                return d.candidate ? analysis::Cell(static_cast<int64_t>(value)) : analysis::Cell();
            };
            table.rows.push_back({{static_cast<int64_t>(r), std::string(d.kept ? "kept" : "dropped"), real(d.score),
                                   if_ranked(d.rank), if_ranked(d.n_candidates), real(d.cut_off)}});
        }
        return table;
    }

    static Table table_of_border(const Border& border, double cut_off, const PromptText& prompt, const Place& place,
                                 const std::string& run) {
        using analysis::ColumnType;
        Table table{"border",
                    fmt::format("The border of layer {}, head {} of {}", place.layer, place.row, run),
                    {{"rank", "Rank", "", ColumnType::integer},
                     {"kept", "Kept", ""},
                     {"token", "Token", "", ColumnType::integer},
                     {"text", "Text", ""},
                     {"score", "Score", "", ColumnType::real, 6},
                     {"margin", "Margin", "%", ColumnType::real, 3}},
                    {}};
        for (const auto* side : {&border.kept, &border.dropped}) {
            for (const auto& entry : *side) {
                const double margin = 100 * (entry.score - cut_off) / std::abs(cut_off);
                table.rows.push_back(
                    {{static_cast<int64_t>(entry.rank), std::string(side == &border.kept ? "kept" : "dropped"),
                      int64_t{entry.token},
                      entry.token < prompt.tokens.size() ? prompt.tokens[entry.token] : std::string(), entry.score,
                      std::isfinite(margin) ? analysis::Cell(margin) : analysis::Cell()}});
            }
        }
        return table;
    }

    static void draw_entry(Context& context, const PromptText& prompt, const Question& asked,
                           const Border::Entry& entry, double cut_off, int digits, bool kept) {
        ImGui::PushID(static_cast<int>(entry.token));
        ImGui::TableNextRow();
        ImGui::TableNextColumn();
        if (!kept) ImGui::PushStyleColor(ImGuiCol_Text, context.theme.ink_quiet);
        if (ImGui::Selectable(fmt::format("{}##border", count(entry.rank)).c_str(), entry.token == asked.token,
                              ImGuiSelectableFlags_SpanAllColumns)) {
            Cursor cursor = context.session.cursor();
            cursor.run = asked.run;
            cursor.first_token = cursor.last_token = entry.token;
            context.session.selection.set(cursor);
        }
        if (ImGui::IsItemHovered() && !asked.is_hover) {
            Cursor over = context.session.cursor();
            over.run = asked.run;
            over.first_token = over.last_token = entry.token;
            context.session.set_hover(over);
            ImGui::SetTooltip("token %s, %s: click to select it", count(entry.token).c_str(),
                              kept ? "kept" : "dropped");
        }
        ImGui::TableNextColumn();
        ImGui::PushFont(context.fonts.mono, 0.9f * ImGui::GetStyle().FontSizeBase);
        text_item(entry.token < prompt.shown.size() ? prompt.shown[entry.token] : std::string("…"));
        ImGui::TableNextColumn();
        ImGui::TextUnformatted(fmt::format("{:.{}g}", entry.score, digits).c_str());
        ImGui::TableNextColumn();
        const double share = 100 * (entry.score - cut_off) / std::abs(cut_off);
        if (entry.score == cut_off)
            ImGui::TextUnformatted(kept ? "the cut-off" : "equal");
        else if (std::isfinite(share))
            ImGui::TextUnformatted(fmt::format("{:+.2g} %", share).c_str());
        ImGui::PopFont();
        if (!kept) ImGui::PopStyleColor();
        ImGui::PopID();
    }

    std::array<Table, 3> tables_;  ///< where it is kept, the heads of a layer, the border of one; as they are drawn
    size_t pointed_at_ = 0;        ///< the one under the mouse
    std::string note_text_;
    bool is_writing_ = false;

    std::string slot(const char* what) const {
        return fmt::format("inspector {} {}", what, static_cast<const void*>(this));
    }
};

}  // namespace

ViewKind inspector_view() {
    return {"inspector", "Inspector", "Why a token was kept or dropped: score, rank, cut-off and the border, by head",
            Dock::right, []() -> std::unique_ptr<View> { return std::make_unique<InspectorView>(); }};
}

}  // namespace kvscope::gui
