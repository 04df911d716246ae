#include <fmt/format.h>
#include <fmt/ranges.h>
#include <imgui.h>
#include <imgui_stdlib.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "app/figures/export_figure.h"
#include "app/gui/figure_choice.h"
#include "app/gui/figure_menu.h"
#include "app/gui/figure_preview.h"
#include "app/gui/figure_source.h"
#include "app/gui/file_dialog.h"
#include "app/gui/view.h"
#include "app/program/version.h"

namespace kvscope::gui {
namespace {

namespace fs = std::filesystem;
using analysis::FigureDefinition;

constexpr int room_step = 32;  // pixels by which the preview's room has to change before it is drawn anew

/// "0, 3, 8-11". @returns false where it is no such list
bool parse_numbers(const std::string& text, std::vector<int>& numbers) {
    numbers.clear();
    const char* at = text.data();
    const char* end = at + text.size();
    const auto skip = [&] {
        while (at < end && (*at == ' ' || *at == ',')) ++at;
    };
    const auto number = [&](int& value) {
        const auto [next, error] = std::from_chars(at, end, value);
        at = next;
        return error == std::errc() && value >= 0;
    };
    for (skip(); at < end; skip()) {
        int first = 0;
        if (!number(first)) return false;
        int last = first;
        if (at < end && *at == '-') {
            ++at;
            if (!number(last) || last - first > 10'000) return false;
        }
        for (int i = first; i <= last; ++i) numbers.push_back(i);
    }
    return true;
}

std::vector<std::string> parse_words(const std::string& text) {
    std::vector<std::string> words;
    std::string word;
    for (const char c : text + ',') {
        if (c != ',' && c != ' ') {
            word += c;
        } else if (!word.empty()) {
            words.push_back(std::exchange(word, {}));
        }
    }
    return words;
}

/// What a person chose about one figure.
struct Choices {
    std::string source;
    std::string layers;
    std::string heads;
    std::string columns;
    bool follows_window = true;  ///< the runs that are shown in the window
    std::set<std::string> runs;  ///< else these
};

/// An export that goes on beside the window.
struct Export {
    fs::path folder;                ///< of all figures; empty: `file`
    fs::path file;                  ///< of one figure
    std::vector<std::string> left;  ///< figures yet to be written, the first is under way
    size_t n_all = 1;
    size_t n_written = 0;
    std::vector<std::string> problems;
};

/// What came of writing a figure.
struct Written {
    std::string nothing;
};

/// All figures with a preview exactly as they are exported.
class ReportView : public View {
 public:
    void draw(Context& context) override {
        Session& session = context.session;
        const Document* focus = session.focus();
        if (!focus || focus->prompt >= focus->reader()->n_prompts()) {
            draw_nothing(context, "Open a trace or run the demo to make figures of it.");
            return;
        }
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
        go_on_exporting(context);
        draw_figure_menu(context, *this, "report", figure(session));
    }

    std::optional<FigureRequest> figure(const Session& session) const override {
        return request_for(session, analysis::figure_definition(chosen_));
    }

    std::vector<std::pair<std::string, std::string>> help() const override {
        return {{"click a figure", "preview exactly as it is exported"},
                {"Export…", "the figure of the preview"},
                {"Export all…", "every figure that there is data for, into a folder"},
                {"right-click", "copy its numbers"}};
    }

    void save(nlohmann::json& state) const override {
        state = {{"figure", chosen_}, {"width_mm", width_mm_}, {"height_mm", height_mm_},
                 {"format", format_}, {"dpi", dpi_},           {"title", title_}};
        save_traces(state, traces_);
    }

    void load(const nlohmann::json& state) override {
        const std::string figure_name = state.value("figure", chosen_);
        for (const FigureDefinition& definition : analysis::figure_definitions()) {
            if (definition.name == figure_name) chosen_ = figure_name;
        }
        width_mm_ = state.value("width_mm", width_mm_);
        height_mm_ = state.value("height_mm", height_mm_);
        format_ = state.value("format", format_);
        dpi_ = state.value("dpi", dpi_);
        title_ = state.value("title", title_);
        load_traces(state, traces_);
    }

 private:
    static bool heeds(const FigureDefinition& definition, const char* option) {
        return std::any_of(definition.options.begin(), definition.options.end(),
                           [&](const auto& each) { return each.name == option; });
    }

    std::optional<FigureRequest> request_for(const Session& session, const FigureDefinition& definition) const {
        // The figure of that name compares two runs of one trace by itself.
        const Traces traces = definition.name == "difference" ? Traces::focused : traces_;
        FigureRequest request = shown_request(session, definition.name, heeds(definition, "runs"), traces);
        if (request.document < 0) return std::nullopt;
        set_options(session, definition, request, request.document, request.options);
        for (TraceRequest& other : request.others)
            set_options(session, definition, request, other.document, other.options);
        if (definition.name == "difference") set_compared_runs(session, request);
        return request;
    }

    /// What a person chose, for one of the request's traces.
    void set_options(const Session& session, const FigureDefinition& definition, const FigureRequest& request,
                     int document, analysis::FigureOptions& options) const {
        const auto found = choices_.find(definition.name);
        const Choices choices = found == choices_.end() ? Choices{} : found->second;
        options.source = choices.source;
        parse_numbers(choices.layers, options.layers);
        parse_numbers(choices.heads, options.heads);
        options.columns = parse_words(choices.columns);
        const bool in_focus = session.focus() && session.focus()->id() == document;
        if (heeds(definition, "runs") && !choices.follows_window && !request.difference && in_focus)
            options.runs = {choices.runs.begin(), choices.runs.end()};
        if (definition.name == "jsd" && (choices.follows_window || !in_focus) && !request.difference)
            options.runs.clear();
        options.title = title_;
        options.width_mm = static_cast<double>(width_mm_);
        options.height_mm = static_cast<double>(height_mm_);
    }

    /// A and B of the window; without them the figure's own choice.
    void set_compared_runs(const Session& session, FigureRequest& request) const {
        const auto found = choices_.find(request.figure);
        if (found != choices_.end() && !found->second.follows_window) return;
        request.options.runs.clear();
        const auto fits = [&](const std::optional<RunKey>& run) {
            return run && run->document == request.document && run->prompt == request.options.prompt;
        };
        if (fits(session.a) && fits(session.b))
            request.options.runs = {std::to_string(session.a->run), std::to_string(session.b->run)};
    }

    void draw_list(const Context& context) {
        std::map<std::string, std::vector<const FigureDefinition*>> papers;
        for (const FigureDefinition& definition : analysis::figure_definitions())
            papers[definition.paper.substr(0, definition.paper.find(','))].push_back(&definition);
        const auto entry = [&](const FigureDefinition& definition) {
            const std::string label = fmt::format("{}##report {}", definition.title, definition.name);
            if (ImGui::Selectable(label.c_str(), definition.name == chosen_)) chosen_ = definition.name;
            ImGui::SetItemTooltip("%s", definition.summary.c_str());
            const size_t comma = definition.paper.find(", ");
            if (comma == std::string::npos) return;
            ImGui::Indent();
            ImGui::PushFont(nullptr, 0.87f * ImGui::GetStyle().FontSizeBase);
            ImGui::TextDisabled("%s", definition.paper.c_str() + comma + 2);
            ImGui::PopFont();
            ImGui::Unindent();
        };
        for (const auto& [paper, definitions] : papers) {
            if (paper.empty()) continue;
            ImGui::PushFont(context.fonts.bold, 0);
            ImGui::TextUnformatted(paper.c_str());
            ImGui::PopFont();
            for (const FigureDefinition* definition : definitions) entry(*definition);
            ImGui::Spacing();
        }
        ImGui::PushFont(context.fonts.bold, 0);
        ImGui::TextUnformatted("Of the runs");
        ImGui::PopFont();
        for (const FigureDefinition* definition : papers[""]) entry(*definition);
    }

    void draw_preview(Context& context) {
        Session& session = context.session;
        const std::string no_difference =
            why_no_difference(session, heeds(analysis::figure_definition(chosen_), "runs"));
        if (traces_ == Traces::difference && chosen_ != "difference" && !no_difference.empty()) {
            draw_nothing(context, no_difference);
            return;
        }
        const auto request = figure(session);
        if (!request) return;
        const ImVec2 room = ImGui::GetContentRegionAvail();
        const float em = ImGui::GetFontSize();
        const float words = 5.5f * em;
        const auto stepped = [](float pixels) {
            return std::max(static_cast<int>(pixels) / room_step * room_step, room_step);
        };
        const int width = stepped(room.x - em);
        const int height = stepped(room.y - words);
        const auto answer = session.tasks.ask<FigurePicture>(
            fmt::format("report {}", static_cast<void*>(this)),
            fmt::format("{} {}x{}", stamp_of(session, *request), width, height),
            [job = FigureJob(session, *request), width, height] { return draw_picture(job, width, height); });
        if (!answer.error.empty()) {
            draw_error(context, answer.error);
            return;
        }
        if (!answer.value || !answer.value->nothing.empty()) {
            draw_nothing(context, answer.value ? answer.value->nothing : "drawing …");
            return;
        }
        const FigurePicture& picture = *answer.value;
        const ImVec2 size{static_cast<float>(picture.width), static_cast<float>(picture.height)};
        const ImVec2 start = ImGui::GetCursorScreenPos();
        const ImVec2 at{std::round(start.x + std::max((room.x - size.x) / 2, 0.0f)),
                        std::round(start.y + std::max((room.y - words - size.y) / 2, 0.0f))};
        ImGui::SetCursorScreenPos(at);
        ImGui::Image(texture_.get(answer.value), size);
        ImGui::GetWindowDrawList()->AddRect({at.x - 1, at.y - 1}, {at.x + size.x + 1, at.y + size.y + 1},
                                            packed(context.theme.line));
        ImGui::SetCursorScreenPos({start.x, std::max(at.y + size.y + 0.6f * em, start.y)});
        ImGui::PushTextWrapPos(0);
        ImGui::TextDisabled("%s", fmt::format("{:.0f} × {:.0f} mm", picture.width_mm, picture.height_mm).c_str());
        ImGui::TextUnformatted(picture.caption.c_str());
        ImGui::PopTextWrapPos();
        ImGui::SetItemTooltip("the caption, which is in the file's metadata");
    }

    void draw_options(Context& context) {
        const FigureDefinition& definition = analysis::figure_definition(chosen_);
        ImGui::PushFont(context.fonts.bold, 0);
        ImGui::TextUnformatted("Size");
        ImGui::PopFont();
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
            ImGui::InputFloat("mm wide##report", &width_mm_, 1, 10, "%.0f");
            width_mm_ = std::clamp(width_mm_, 30.0f, 1000.0f);
        }
        ImGui::SetNextItemWidth(8 * em);
        ImGui::InputFloat("mm high##report", &height_mm_, 1, 10, height_mm_ > 0 ? "%.0f" : "own");
        height_mm_ = std::clamp(height_mm_, 0.0f, 1000.0f);
        ImGui::Checkbox("title##report", &title_);
        ImGui::SetItemTooltip("papers have captions instead");

        ImGui::Spacing();
        ImGui::PushFont(context.fonts.bold, 0);
        ImGui::TextUnformatted("What is shown");
        ImGui::PopFont();
        if (chosen_ != "difference") choose_traces("report", context.session, traces_);
        for (const auto& option : definition.options) draw_option(context, definition, option);

        ImGui::Spacing();
        ImGui::PushFont(context.fonts.bold, 0);
        ImGui::TextUnformatted("File");
        ImGui::PopFont();
        ImGui::SetNextItemWidth(8 * em);
        if (ImGui::BeginCombo("##format report", format_.c_str())) {
            for (const auto& format : figures::figure_formats()) {
                const std::string extension(format->extension());
                if (ImGui::Selectable(extension.c_str(), extension == format_)) format_ = extension;
                ImGui::SetItemTooltip("%s", std::string(format->description()).c_str());
            }
            ImGui::EndCombo();
        }
        if (format_ == "png") {
            ImGui::SetNextItemWidth(8 * em);
            ImGui::InputInt("dots per inch##report", &dpi_, 50, 100);
            dpi_ = std::clamp(dpi_, 10, 2400);
        }
        ImGui::BeginDisabled(export_.has_value());
        if (ImGui::Button("Export…##report")) ask_for_file(context);
        ImGui::SameLine();
        if (ImGui::Button("Export all…##report")) ask_for_folder(context);
        ImGui::EndDisabled();
        if (!export_) return;
        const auto done = static_cast<float>(export_->n_all - export_->left.size());
        ImGui::ProgressBar(done / static_cast<float>(export_->n_all), {-FLT_MIN, 0},
                           export_->left.empty() ? "" : export_->left.front().c_str());
    }

    void draw_option(Context& context, const FigureDefinition& definition, const analysis::FigureOption& option) {
        Choices& choices = choices_[definition.name];
        const auto numbers = [&](const char* label, std::string& text) {
            std::vector<int> parsed;
            const bool is_list = parse_numbers(text, parsed);
            if (!is_list) ImGui::PushStyleColor(ImGuiCol_Text, context.theme.error);
            ImGui::SetNextItemWidth(11 * ImGui::GetFontSize());
            ImGui::InputTextWithHint(label, "0, 3, 8-11", &text);
            if (!is_list) ImGui::PopStyleColor();
            ImGui::SetItemTooltip("%s", option.help.c_str());
        };
        if (option.name == "source") choose_source("report", definition, choices.source);
        if (option.name == "layers") numbers("layers##report", choices.layers);
        if (option.name == "heads") numbers("heads##report", choices.heads);
        if (option.name == "columns") {
            ImGui::SetNextItemWidth(11 * ImGui::GetFontSize());
            ImGui::InputTextWithHint("columns##report", "coverage, kl_mean", &choices.columns);
            ImGui::SetItemTooltip("%s", option.help.c_str());
        }
        const bool of_no_run = definition.name == "jsd" && !choices.source.starts_with("scores");
        if (option.name == "runs" && !of_no_run) draw_runs(context, choices, option.help);
    }

    static void draw_runs(Context& context, Choices& choices, const std::string& help) {
        Session& session = context.session;
        ImGui::Checkbox("runs as in the window##report", &choices.follows_window);
        ImGui::SetItemTooltip("%s", help.c_str());
        if (choices.follows_window) return;
        const Document& document = *session.focus();
        ImGui::Indent();
        for (int run = 0; run < document.reader()->n_runs(document.prompt); ++run) {
            const RunKey key{document.id(), document.prompt, run};
            if (session.attributes(key).status != "complete") continue;
            const std::string name = std::to_string(run);
            bool chosen = choices.runs.contains(name);
            if (!ImGui::Checkbox(fmt::format("{}##report run", session.look(key).label).c_str(), &chosen)) continue;
            if (chosen)
                choices.runs.insert(name);
            else
                choices.runs.erase(name);
        }
        ImGui::Unindent();
    }

    std::string file_name(const Session& session, const std::string& figure_name) const {
        const Document* focus = session.focus();
        return fmt::format("{}-{}.{}", focus ? focus->path().stem().string() : "kvscope", figure_name, format_);
    }

    void ask_for_file(Context& context) {
        FileDialog::Question question;
        question.kind = FileDialog::Kind::save;
        question.title = "Export this figure";
        question.suggestion = file_name(context.session, chosen_);
        question.answer = [this, alive = std::weak_ptr<bool>(alive_)](const fs::path& path) {
            if (!alive.lock()) return;
            export_ = Export{{}, path, {chosen_}, 1, 0, {}};
        };
        context.desk.files.ask(std::move(question));
    }

    void ask_for_folder(Context& context) {
        FileDialog::Question question;
        question.kind = FileDialog::Kind::folder;
        question.title = "Export all figures into a folder";
        question.suggestion = context.session.focus()->path().stem().string() + "-figures";
        std::vector<std::string> names;
        for (const FigureDefinition& definition : analysis::figure_definitions())
            names.push_back(file_name(context.session, definition.name));
        question.objection = [names](const fs::path& folder) -> std::string {
            const auto there = std::count_if(names.begin(), names.end(),
                                             [&](const std::string& name) { return fs::exists(folder / name); });
            return there == 0 ? "" : fmt::format("{} of the figures are there already", there);
        };
        question.answer = [this, alive = std::weak_ptr<bool>(alive_)](const fs::path& path) {
            if (!alive.lock()) return;
            Export all;
            all.folder = path;
            for (const FigureDefinition& definition : analysis::figure_definitions())
                all.left.push_back(definition.name);
            all.n_all = all.left.size();
            export_ = std::move(all);
        };
        context.desk.files.ask(std::move(question));
    }

    /// One figure at a time on a worker; this asks how far it is.
    void go_on_exporting(Context& context) {
        if (!export_) return;
        Session& session = context.session;
        if (export_->left.empty()) {
            finish(context);
            return;
        }
        const std::string name = export_->left.front();
        const auto request = request_for(session, analysis::figure_definition(name));
        if (!request) {
            export_.reset();
            return;
        }
        const fs::path path = export_->folder.empty() ? export_->file : export_->folder / file_name(session, name);
        const figures::ExportOptions options{static_cast<double>(dpi_), std::string("kvscope ") + program::version()};
        const auto answer = session.tasks.ask<Written>(
            fmt::format("report export {}", static_cast<void*>(this)),
            fmt::format("{} {} {}", n_exports_, name, path.string()),
            [job = FigureJob(session, *request), path, options]() -> Written {
                try {
                    fs::create_directories(path.parent_path());
                    figures::export_figure({[&] { return job.figure(); }, [&] { return job.numbers(); }}, path, options,
                                           true);
                } catch (const analysis::NothingToShow& nothing) {
                    return {nothing.what()};
                }
                return {};
            });
        if (!answer.current) return;
        if (!answer.error.empty())
            export_->problems.push_back(fmt::format("{}: {}", name, answer.error));
        else if (!answer.value->nothing.empty() && export_->folder.empty())
            export_->problems.push_back(answer.value->nothing);
        else if (answer.value->nothing.empty())
            ++export_->n_written;
        export_->left.erase(export_->left.begin());
    }

    void finish(Context& context) {
        const Export& done = *export_;
        if (!done.folder.empty()) {
            const bool lacks_some = done.n_written + done.problems.size() < done.n_all;
            context.desk.notice(
                fmt::format("{} of {} figures written into {}{}", done.n_written, done.n_all, done.folder.string(),
                            lacks_some ? "; for the others this trace has no data" : ""),
                false);
        } else if (done.n_written > 0) {
            context.desk.notice(done.file.string() + " written", false);
        }
        for (const std::string& problem : done.problems) context.desk.notice(problem, true);
        ++n_exports_;
        export_.reset();
    }

    std::string chosen_ = "retention";
    Traces traces_ = Traces::all;
    std::map<std::string, Choices> choices_;
    float width_mm_ = 0;
    float height_mm_ = 0;
    std::string format_ = "pdf";
    int dpi_ = 300;
    bool title_ = false;
    std::optional<Export> export_;
    int n_exports_ = 0;
    PictureTexture texture_;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  ///< for the file dialog's answers
};

}  // namespace

ViewKind report_view() {
    return {"report", "Report", "All figures with a preview exactly as they are exported, one by one or all at once",
            Dock::center, []() -> std::unique_ptr<View> { return std::make_unique<ReportView>(); }};
}

}  // namespace kvscope::gui
