#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "app/figures/figure_format.h"
#include "app/gui/figure/export_dialog.h"
#include "app/gui/figure/figure_choices.h"
#include "app/gui/figure/figure_export.h"
#include "app/gui/figure/figure_job.h"
#include "app/gui/figure/figure_menu.h"
#include "app/gui/figure/figure_preview.h"
#include "app/gui/figure/paper_items.h"
#include "app/gui/figure/report_choices.h"
#include "app/gui/view/file_dialog.h"
#include "app/gui/view/view.h"
#include "app/gui/view/widgets.h"
#include "app/program/version.h"
#include "common/json.h"

namespace kvscope::gui {
namespace {

using analysis::FigureDefinition;

constexpr int room_step = 32;  // change of available pixels after which the preview is drawn again

class ReportView : public View {
 public:
    void draw(Context& context) override {
        Session& session = context.session;
        const Document* focus = session.focus();
        if (!focus) return draw_nothing(context, open_trace_or_demo() + " to make figures.");
        find_first_figure(*focus);
        if (first_.empty()) return draw_nothing(context, why_no_prompt(*focus));
        const float em = ImGui::GetFontSize();
        const float height = ImGui::GetContentRegionAvail().y;
        ImGui::BeginChild("figures", {14 * em, height});
        draw_list(context);
        ImGui::EndChild();
        ImGui::SameLine(0, em);
        const float right = 19 * em;
        ImGui::BeginChild("preview", {std::max(ImGui::GetContentRegionAvail().x - right - em, 6 * em), height});
        draw_preview(context);
        ImGui::EndChild();
        ImGui::SameLine(0, em);
        ImGui::BeginChild("options", {0, height});
        draw_options(context);
        ImGui::EndChild();
        draw_figure_menu(context, *this, "report", figure(session));
    }

    std::optional<FigureRequest> figure(const Session& session) const override {
        return request_for(session, analysis::figure_definition(shown_name()));
    }

    std::vector<std::pair<std::string, std::string>> help() const override {
        return {{"click a figure", "show a preview of the exported figure"},
                {"Export…", "export the figure in the preview"},
                {"Export all…", "export every figure with data into a folder"},
                {"right-click", "copy the numbers of the figure"}};
    }

    std::vector<std::string> commands() const override { return {"Export…", "Export all…"}; }

    void save(nlohmann::json& state) const override {
        state = {{"figure", chosen_}, {"width_mm", width_mm_}, {"height_mm", height_mm_},
                 {"format", format_}, {"dpi", dpi_},           {"title", title_}};
        save_traces_choice(state, traces_);
    }

    void load(const nlohmann::json& state) override {
        const std::string figure_name = state.value("figure", chosen_);
        for (const FigureDefinition& definition : analysis::figure_definitions())
            if (definition.name == figure_name) chosen_ = figure_name;
        width_mm_ = state.value("width_mm", width_mm_);
        height_mm_ = state.value("height_mm", height_mm_);
        format_ = state.value("format", format_);
        dpi_ = state.value("dpi", dpi_);
        title_ = state.value("title", title_);
        load_traces_choice(state, traces_);
    }

 private:
    std::string shown_name() const { return !chosen_.empty() ? chosen_ : !first_.empty() ? first_ : "retention"; }

    void find_first_figure(const Document& focus) {
        const std::string stamp = fmt::format("{} {}", focus.id(), focus.stamp());
        if (std::exchange(first_stamp_, stamp) == stamp) return;
        first_ = "retention";
        if (focus.prompt < focus.reader()->n_prompts()) return;
        const auto can_draw = [&](const FigureDefinition& definition) {
            return reason_against(definition, focus).empty();
        };
        const auto all = analysis::figure_definitions();
        const auto found = std::ranges::find_if(all, can_draw);
        const auto& table = analysis::figure_definition("results-table");
        first_ = can_draw(table) ? table.name : found == all.end() ? "" : found->name;
    }

    /// Returns why a trace without prompts cannot have the figure, or an empty text.
    static std::string reason_against(const FigureDefinition& definition, const Document& document) {
        try {
            return analysis::why_no_figure(definition, *document.reader(), {});
        } catch (const analysis::FigureError& error) {
            return error.what();
        }
    }

    std::string why_no_figure(const Document& document) const {
        const bool has_prompt = document.prompt < document.reader()->n_prompts();
        return has_prompt ? std::string("no run of this trace can be shown")
                          : reason_against(analysis::figure_definition(shown_name()), document);
    }

    static bool heeds(const FigureDefinition& definition, const char* option) {
        return analysis::find_option(definition, option) != nullptr;
    }

    static bool heeds_runs(const FigureDefinition& definition) {
        return heeds(definition, "runs") && !definition.runs_are_settings;
    }

    std::optional<FigureRequest> request_for(const Session& session, const FigureDefinition& definition) const {
        // This figure already compares two runs of one trace.
        const Traces traces = definition.name == "difference" ? Traces::focused : traces_;
        FigureRequest request = figure_request_for_shown_runs(session, definition.name, heeds_runs(definition), traces);
        if (request.document < 0) return std::nullopt;
        set_options(session, definition, request, request.document, request.options, request.runs);
        for (TraceRequest& other : request.others)
            set_options(session, definition, request, other.document, other.options, other.runs);
        if (definition.name == "difference") set_compared_runs(session, request);
        return request;
    }

    void set_options(const Session& session, const FigureDefinition& definition, const FigureRequest& request,
                     int document, analysis::FigureOptions& options, std::vector<RunId>& runs) const {
        const auto found = choices_.find(definition.name);
        const ReportChoices choices = found == choices_.end() ? ReportChoices{} : found->second;
        choices.set(options);
        const bool in_focus = session.focus() && session.focus()->id() == document;
        if (heeds_runs(definition) && !choices.follows_app && !request.difference && in_focus)
            runs = choices.runs_of(document, options.prompt);
        if (definition.name == "jsd" && (choices.follows_app || !in_focus) && !request.difference) runs.clear();
        options.title = title_;
        options.width_mm = static_cast<double>(width_mm_);
        options.height_mm = static_cast<double>(height_mm_);
    }

    void set_compared_runs(const Session& session, FigureRequest& request) const {
        const auto found = choices_.find(request.figure);
        if (found != choices_.end() && !found->second.follows_app) return;
        request.runs.clear();
        const auto fits = [&](const std::optional<RunKey>& run) {
            return run && run->document == request.document && run->prompt == request.options.prompt;
        };
        if (fits(session.pair.a) && fits(session.pair.b)) request.runs = {session.pair.a->run, session.pair.b->run};
    }

    void draw_list(Context& context) {
        std::map<std::string, std::vector<const FigureDefinition*>> by_paper;
        for (const FigureDefinition& definition : analysis::figure_definitions())
            by_paper[definition.paper.substr(0, definition.paper.find(','))].push_back(&definition);
        const auto entry = [&](const FigureDefinition& definition) {
            const std::string label = fmt::format("{}##report {}", definition.title, definition.name);
            if (ImGui::Selectable(label.c_str(), definition.name == shown_name())) {
                chosen_ = definition.name;
                page_ = 0;
            }
            item_tooltip(definition.summary);
            const size_t comma = definition.paper.find(", ");
            if (comma == std::string::npos) return;
            ImGui::Indent();
            ImGui::PushFont(nullptr, 0.87f * ImGui::GetStyle().FontSizeBase);
            ImGui::TextDisabled("%s", definition.paper.c_str() + comma + 2);
            ImGui::PopFont();
            ImGui::Unindent();
        };
        for (const auto& [paper, definitions] : by_paper) {
            if (paper.empty()) continue;
            text_in(context.fonts.bold, paper);
            for (const FigureDefinition* definition : definitions) entry(*definition);
            ImGui::Spacing();
        }
        text_in(context.fonts.bold, "Figures of runs");
        for (const FigureDefinition* definition : by_paper[""]) entry(*definition);
        ImGui::Spacing();
        text_in(context.fonts.bold, "Items of papers");
        if (const papers::PaperItem* item = paper_items_.draw(context)) show_item(*item, *context.session.focus());
    }

    void show_item(const papers::PaperItem& item, const Document& focus) {
        chosen_ = analysis::figure_definition(item.figure).name;
        choices_[chosen_] = choices_of_item(item, focus);
        page_ = 0;
    }

    void draw_preview(Context& context) {
        Session& session = context.session;
        const std::string no_difference =
            why_no_difference(session, heeds_runs(analysis::figure_definition(shown_name())));
        if (traces_ == Traces::difference && shown_name() != "difference" && !no_difference.empty())
            return draw_nothing(context, no_difference);
        const auto request = figure(session);
        if (!request) return draw_nothing(context, why_no_figure(*session.focus()));
        const ImVec2 room = ImGui::GetContentRegionAvail();
        const float em = ImGui::GetFontSize();
        const float words = 5.5f * em;
        const auto stepped = [](float pixels) {
            return std::max(static_cast<int>(pixels) / room_step * room_step, room_step);
        };
        const int width = stepped(room.x - em);
        const int height = stepped(room.y - words);
        const auto answer = session.tasks.ask(
            drawn_, "", fmt::format("{} {}x{} {}", figure_change_stamp(session, *request), width, height, page_),
            [job = FigureJob(session, *request), width, height, page = page_](const std::stop_token& stop) {
                return render_preview_page(job.with_stop(stop), width, height, page);
            });
        if (!answer.error.empty()) return draw_error(context, answer.error);
        if (!answer.value || !answer.value->nothing.empty())
            return draw_nothing(context, answer.value ? answer.value->nothing : "drawing …");
        const FigurePicture& picture = *answer.value;
        const ImVec2 size{static_cast<float>(picture.width), static_cast<float>(picture.height)};
        const ImVec2 start = ImGui::GetCursorScreenPos();
        const ImVec2 at{std::round(start.x + std::max((room.x - size.x) / 2, 0.0f)),
                        std::round(start.y + std::max((room.y - words - size.y) / 2, 0.0f))};
        ImGui::SetCursorScreenPos(at);
        ImGui::Image(texture_.get(answer.value), size);
        ImGui::GetWindowDrawList()->AddRect({at.x - 1, at.y - 1}, {at.x + size.x + 1, at.y + size.y + 1},
                                            packed(context.theme.line));
        const float line = std::max(size.x, std::min(room.x, 40 * em));
        ImGui::SetCursorScreenPos(
            {std::round(start.x + (room.x - line) / 2), std::max(at.y + size.y + 0.6f * em, start.y)});
        ImGui::BeginGroup();
        ImGui::PushTextWrapPos(ImGui::GetCursorPosX() + line);
        draw_page_choice(picture, answer.current);
        disabled_text(fmt::format("{:.0f} × {:.0f} mm", picture.width_mm, picture.height_mm));
        ImGui::TextUnformatted(picture.caption.c_str());
        ImGui::PopTextWrapPos();
        ImGui::SetItemTooltip("caption, which is also in the file's metadata");
        ImGui::EndGroup();
    }

    void draw_page_choice(const FigurePicture& picture, bool is_wanted) {
        if (picture.n_pages < 2) return;
        if (is_wanted) page_ = picture.page;
        ImGui::BeginDisabled(page_ == 0);
        if (ImGui::ArrowButton("page before##report", ImGuiDir_Left)) --page_;
        ImGui::EndDisabled();
        ImGui::SameLine();
        plain_text(fmt::format("page {} of {}", picture.page + 1, picture.n_pages));
        ImGui::SameLine();
        ImGui::BeginDisabled(page_ + 1 >= picture.n_pages);
        if (ImGui::ArrowButton("page after##report", ImGuiDir_Right)) ++page_;
        ImGui::EndDisabled();
        ImGui::SameLine();
    }

    void draw_options(Context& context) {
        const FigureDefinition& definition = analysis::figure_definition(shown_name());
        text_in(context.fonts.bold, "Size");
        const auto width = [&](const char* label, float mm) {
            if (ImGui::RadioButton(label, width_mm_ == mm)) width_mm_ = mm;
        };
        width("the figure's own##report", 0);
        width("1 column, 84 mm##report", 84);
        width("2 columns, 174 mm##report", 174);
        const bool own = width_mm_ != 0 && width_mm_ != 84 && width_mm_ != 174;
        if (ImGui::RadioButton("another width##report", own) && !own) width_mm_ = 120;
        const float em = ImGui::GetFontSize();
        if (own) {
            ImGui::SetNextItemWidth(8 * em);
            ImGui::InputFloat("Width (mm)##report", &width_mm_, 1, 10, "%.0f");
            width_mm_ = std::clamp(width_mm_, 30.0f, 1000.0f);
        }
        ImGui::SetNextItemWidth(8 * em);
        ImGui::InputFloat("Height (mm)##report", &height_mm_, 1, 10, height_mm_ > 0 ? "%.0f" : "automatic");
        height_mm_ = std::clamp(height_mm_, 0.0f, 1000.0f);
        ImGui::Checkbox("title##report", &title_);
        ImGui::SetItemTooltip("figures in papers have captions instead");

        ImGui::Spacing();
        text_in(context.fonts.bold, "Contents of the figure");
        if (shown_name() != "difference") draw_traces_choice("report", context.session, traces_);
        draw_report_choices(context, definition, choices_[definition.name]);

        ImGui::Spacing();
        text_in(context.fonts.bold, "File");
        ImGui::SetNextItemWidth(8 * em);
        if (ImGui::BeginCombo("##format report", format_.c_str())) {
            for (const auto& format : figures::figure_formats()) {
                const std::string extension(format.extension);
                if (ImGui::Selectable(extension.c_str(), extension == format_)) format_ = extension;
                item_tooltip(std::string(format.description));
            }
            ImGui::EndCombo();
        }
        if (format_ == "png") {
            ImGui::SetNextItemWidth(8 * em);
            ImGui::InputInt("dots per inch##report", &dpi_, 50, 100);
            dpi_ = std::clamp(dpi_, 10, 2400);
        }
        if (format_ == "csv") {
            ImGui::Checkbox("safe for spreadsheets##report", &context.session.csv_safe);
            item_tooltip(csv_safe_words);
        }
        ImGui::BeginDisabled(export_.is_running());
        if (command_button("Export…##report")) ask_for_file(context);
        ImGui::SameLine();
        if (command_button("Export all…##report")) ask_for_folder(context);
        ImGui::EndDisabled();
        export_.draw_progress();
    }

    std::string file_name(const Session& session, const std::string& figure_name) const {
        const Document* focus = session.focus();
        return fmt::format("{}-{}.{}", focus ? focus->path().stem().string() : "kvscope", figure_name, format_);
    }

    FigureForFile for_file(const Session& session, const FigureDefinition& definition) const {
        const std::string nothing = traces_ == Traces::difference ? why_no_difference(session, heeds_runs(definition))
                                                                  : "no open trace has a prompt to show";
        return {session, definition, request_for(session, definition), nothing, file_name(session, definition.name)};
    }

    figures::ExportOptions export_options(const Session& session) const {
        return {static_cast<double>(dpi_), std::string("kvscope ") + program::version(), session.csv_safe};
    }

    void ask_for_file(Context& context) {
        export_.ask_for_file(context.session.tasks, context.host.files,
                             for_file(context.session, analysis::figure_definition(shown_name())),
                             export_options(context.session), context.host.notice, lifetime_.watch());
    }

    void ask_for_folder(Context& context) {
        std::vector<FigureForFile> figures;
        for (const FigureDefinition& definition : analysis::figure_definitions())
            figures.push_back(for_file(context.session, definition));
        export_.ask_for_folder(context.session.tasks, context.host.files,
                               context.session.focus()->path().stem().string() + "-figures", figures,
                               export_options(context.session), context.host.notice, lifetime_.watch());
    }

    std::string chosen_;  ///< the chosen figure; empty: none is chosen
    std::string first_ =
        "retention";           ///< the figure for the trace in focus if none is chosen; empty: none can be drawn
    std::string first_stamp_;  ///< of the trace to which `first_` belongs
    size_t page_ = 0;          ///< page of the preview
    Traces traces_ = Traces::all;
    std::map<std::string, ReportChoices> choices_;
    float width_mm_ = 0;
    float height_mm_ = 0;
    std::string format_ = "pdf";
    int dpi_ = 300;
    bool title_ = false;
    PaperItems paper_items_;
    FigureExport export_;
    TaskSlot<FigurePicture> drawn_;
    PictureTexture texture_;
};

}  // namespace

ViewKind report_view() {
    return {"report",     "Report",     "All figures with exact previews, exported one by one or all together",
            Dock::center, Topic::files, make_view<ReportView>,
            R"(
----------------
-.#####..#####.-
-.#999#..#*..#.-
-.#666#..#.*.#.-
-.#333#..#..*#.-
-.#####..#####.-
-.-----..-----.-
----------------)"};
}

}  // namespace kvscope::gui
