#include "app/gui/view/prompt_form.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <imgui.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "analysis/tables/table_format.h"
#include "app/gui/view/file_dialog.h"
#include "app/gui/view/parameter_form.h"
#include "app/gui/view/run_options_form.h"
#include "app/gui/view/text_field.h"
#include "app/gui/view/widgets.h"
#include "engine/tasks/api/task.h"

namespace kvscope::gui {
namespace {

void take_sample(const Context& context, RunForm& form, const std::string& name) {
    try {
        form.take_sample(name);
    } catch (const std::exception& error) {
        context.host.notice(error.what(), true);
    }
}

/// Draws the first reason why prompts are left out, and the others as a tooltip.
void draw_reasons(const std::vector<std::string>& reasons, const Theme& theme) {
    constexpr size_t most_shown = 20;
    if (reasons.empty()) return;
    const size_t n = reasons.size();
    wrapped_text(fmt::format("{} left out: {}{}", n, reasons.front(), n > 1 ? ", …" : ""), theme.warning);
    const auto shown = std::span(reasons).first(std::min(n, most_shown));
    item_tooltip(fmt::format("{}{}", fmt::join(shown, "\n"), n > most_shown ? "\n…" : ""));
}

void draw_count(const Context& context, const RunForm& form, const std::optional<TokenCount>& tokens) {
    const EngineStatus status = context.engine->status();
    const bool is_coming = status.busy() || (!status.model.empty() && !status.is_model_refused);
    const bool is_list = !form.request.sources.empty();
    if (!is_list && form.request.context.empty()) {
        ImGui::TextDisabled("no text yet");
    } else if (!tokens) {
        ImGui::PushTextWrapPos();
        ImGui::TextDisabled(is_coming ? "counting tokens …" : "tokens are counted once the model is loaded");
        ImGui::PopTextWrapPos();
    } else if (const std::string problem = form.length_problem(tokens); !problem.empty()) {
        draw_problem(problem, context.theme);
    } else {
        const std::string text =
            fmt::format("{}{} tokens; the model accepts {}", is_list ? "longest prompt: " : "",
                        analysis::format_count(tokens->n_tokens), analysis::format_count(tokens->context_length));
        is_list ? quiet_text(text) : disabled_text(text);
        if (const int n = is_list ? form.n_too_long(*tokens) : 0; n > 0)
            wrapped_text(fmt::format("{} of {} prompts do not fit with {} new tokens and are left out", n,
                                     tokens->lengths.size(), form.request.options.n_new),
                         context.theme.warning);
        draw_reasons(tokens->left_out, context.theme);
    }
    if ((!is_list && form.request.context.empty()) || !tokens || tokens->remark.empty()) return;
    quiet_text(tokens->remark);
}

void draw_questions(const Theme& theme, std::vector<std::string>& questions, bool is_list) {
    if (questions.empty()) questions.emplace_back();
    std::optional<size_t> removed;
    const float button = ImGui::GetFrameHeight() + ImGui::GetStyle().ItemSpacing.x;
    for (size_t i = 0; i < questions.size(); ++i) {
        const std::string number = i == 0 ? "" : fmt::format(" {}", i + 1);
        const ImVec2 padding = ImGui::GetStyle().FramePadding;
        const float width = ImGui::GetContentRegionAvail().x - (questions.size() > 1 ? button : 0);
        const float text_height =
            ImGui::CalcTextSize((questions[i] + " ").c_str(), nullptr, false, width - 2 * padding.x).y;
        const ImVec2 at = ImGui::GetCursorScreenPos();
        wrapped_field(("##question" + number).c_str(), &questions[i],
                      {width, std::min(text_height, 6 * ImGui::GetFontSize()) + 2 * padding.y},
                      ImGuiInputTextFlags_CtrlEnterForNewLine | ImGuiInputTextFlags_NoHorizontalScroll);
        if (questions[i].empty())
            ImGui::GetWindowDrawList()->AddText({at.x + padding.x, at.y + padding.y}, packed(theme.ink_quiet),
                                                i > 0     ? "Another question"
                                                : is_list ? "Question after prompts that have none (optional)"
                                                          : "Question (optional)");
        if (questions.size() < 2) continue;
        ImGui::SameLine();
        if (ImGui::Button(("×##question" + number).c_str(), {ImGui::GetFrameHeight(), 0})) removed = i;
        ImGui::SetItemTooltip("removes this question");
    }
    if (removed) questions.erase(questions.begin() + static_cast<std::ptrdiff_t>(*removed));
    if (ImGui::SmallButton("+ question")) questions.emplace_back();
    ImGui::SetItemTooltip(is_list
                              ? "adds a question about each prompt that has no question of its own"
                              : "adds a question on the same text; each question is a separate prompt in the trace");
}

void draw_task_choice(RunForm& form) {
    const TaskSettings* chosen = form.task();
    const auto label = [](const TaskSettings& of) { return fmt::format("Task {}", of.task->name); };
    ImGui::SetNextItemWidth(-FLT_MIN);
    if (!ImGui::BeginCombo("##task", chosen ? label(*chosen).c_str() : "Own prompt")) return;
    if (ImGui::Selectable("Own prompt", !chosen)) form.choose_task({});
    for (size_t i = 0; i < form.tasks.size(); ++i) {
        if (ImGui::Selectable(label(form.tasks[i]).c_str(), chosen == &form.tasks[i])) form.choose_task(i);
        wrapped_tooltip(form.tasks[i].task->title);
    }
    ImGui::EndCombo();
}

/// @param n_questions number of questions of the prompt or of a task's sample
void draw_switches(RunRequest& request, int n_questions) {
    ImGui::Checkbox("Chat template", &request.options.use_template);
    ImGui::SetItemTooltip("applies the model's chat template, if any");
    same_line_if_fits(ImGui::CalcTextSize("Control tokens").x + 2 * ImGui::GetFrameHeight());
    ImGui::Checkbox("Control tokens", &request.options.parse_special);
    ImGui::SetItemTooltip(
        "Reads control tokens in the text, such as <|im_end|>, as tokens. If off, they are plain text. With a chat "
        "template they are always read as tokens.");
    const int n = n_questions;
    ImGui::BeginDisabled(n == 0);
    ImGui::Checkbox(n > 1 ? "Policies see the questions###aware" : "Policies see the question###aware",
                    &request.options.query_aware);
    ImGui::EndDisabled();
    const bool sees = request.options.query_aware;
    const char* meaning = n == 0  ? "without a question the whole text is compressed"
                          : sees  ? n > 1
                                        ? "policies compress context and question together, separately for each question"
                                        : "policies compress context and question together, which is easier for them"
                          : n > 1 ? "the context is compressed once, before the questions are known; all questions use "
                                    "the same compressed cache"
                                  : "the context is compressed before the question is known";
    quiet_text(meaning);
}

}  // namespace

void PromptForm::ask_for_file(Context& context) {
    context.host.files.ask({.kind = FileDialog::Kind::open,
                            .title = "Choose a text file for the prompt",
                            .extensions = {".txt", ".md", ".markdown"},
                            .answer = [this](const auto& path) { file_ = path; },
                            .asker = lifetime_.watch()});
}

void PromptForm::ask_for_sources(Context& context) {
    context.host.files.ask({.kind = FileDialog::Kind::open_several,
                            .title = "Choose text files, JSONL files or folders",
                            .extensions = {".txt", ".md", ".markdown", ".jsonl", ".ndjson"},
                            .answer = [this](const auto& path) { sources_.push_back(path); },
                            .asker = lifetime_.watch()});
}

void PromptForm::take_files(const std::vector<std::filesystem::path>& paths) {
    if (paths.size() == 1 && is_text_file(paths.front()))
        file_ = paths.front();
    else
        sources_.insert(sources_.end(), paths.begin(), paths.end());
}

void PromptForm::update(Context& context, RunForm& form) {
    const bool is_list = !form.request.sources.empty() || !sources_.empty();
    if (!file_.empty() && is_list) sources_.push_back(std::exchange(file_, {}));
    if (!sources_.empty()) form.add_sources(std::exchange(sources_, {}));
    form.contents.clear();
    for (const auto& source : form.request.sources) form.contents.push_back(context.engine->read_source(source));
    if (file_.empty()) return;
    const std::filesystem::path path = std::exchange(file_, {});
    try {
        form.read_prompt(path);
        context.host.notice(fmt::format("prompt read from {}", path.filename().string()), false);
    } catch (const std::exception& error) {
        context.host.notice(error.what(), true);
    }
}

void PromptForm::draw_task(Context& context, RunForm& form) const {
    const engine::Task& task = *form.task()->task;
    policies::ParameterValues& values = form.tasks[static_cast<size_t>(form.task() - form.tasks.data())].values;
    ImGui::TextWrapped("%s", task.title.c_str());
    wrapped_tooltip(task.citation);
    for (const policies::Parameter& parameter : task.parameters) {
        ParameterField field;
        const auto take = [&values, name = parameter.name](const auto& path) { values.set(name, path.string()); };
        if (parameter.kind == policies::ParameterKind::file)
            field.browse = [&] {
                context.host.files.ask({.kind = FileDialog::Kind::open,
                                        .title = fmt::format("Task {}: {}", task.name, parameter.name),
                                        .answer = take,
                                        .asker = lifetime_.watch()});
            };
        edit_parameter(parameter, values, context.theme, field);
    }
    draw_problem(form.task_file_problem(), context.theme);
    draw_switches(form.request, 1);
}

void PromptForm::draw_sources(Context& context, RunForm& form) {
    if (ImGui::Button("Add prompts…")) ask_for_sources(context);
    ImGui::SetItemTooltip("adds text files, JSONL files and folders; you can also drop them on the app");
    ImGui::SameLine();
    const bool removes_all = ImGui::Button("Remove all");
    ImGui::SetItemTooltip("removes all files and folders from the list; the text that you wrote returns");
    ImGui::SetNextWindowSizeConstraints({0, 0}, {FLT_MAX, 14 * ImGui::GetFontSize()});
    ImGui::BeginChild("sources", {0, 0}, ImGuiChildFlags_AutoResizeY);
    std::optional<size_t> removed;
    for (size_t i = 0; i < form.request.sources.size(); ++i) {
        const std::filesystem::path& source = form.request.sources[i];
        const TaskResult<PromptSource> read = i < form.contents.size() ? form.contents[i] : TaskResult<PromptSource>();
        ImGui::PushID(static_cast<int>(i));
        if (ImGui::SmallButton("×##source")) removed = i;
        ImGui::SetItemTooltip("removes the file or folder from the list");
        ImGui::PopID();
        ImGui::SameLine();
        plain_text(source.filename().string());
        item_tooltip(source.string());
        const std::string size = !read.error.empty() ? "unreadable"
                                 : !read.value       ? "reading …"
                                 : read.value->n_prompts == 1
                                     ? "1 prompt"
                                     : fmt::format("{} prompts", analysis::format_count(read.value->n_prompts));
        same_line_if_fits(ImGui::CalcTextSize(size.c_str()).x);
        wrapped_text(size, read.error.empty() ? context.theme.ink_quiet : context.theme.error);
        if (read.error.empty() && read.value) draw_reasons(read.value->problems, context.theme);
    }
    draw_scroll_fade(context.theme);
    ImGui::EndChild();
    draw_problem(form.source_problem(), context.theme);
    if (removed) form.remove_source(*removed);
    if (removes_all) form.request.sources.clear();
}

void PromptForm::draw_text(Context& context, RunForm& form, bool fills) {
    const float width = ImGui::GetContentRegionAvail().x - 5.5f * ImGui::GetFontSize();
    const float add = button_width("Add prompts…") + ImGui::GetStyle().ItemSpacing.x;
    ImGui::SetNextItemWidth(width - add > 2 * ImGui::GetFontSize() ? width - add : width);
    if (ImGui::BeginCombo("##sample", "Samples", ImGuiComboFlags_HeightLarge)) {
        for (const auto& [name, title] : sample_prompts())
            if (ImGui::Selectable(title.c_str())) take_sample(context, form, name);
        ImGui::EndCombo();
    }
    ImGui::SameLine();
    if (ImGui::Button("File…##prompt")) ask_for_file(context);
    ImGui::SetItemTooltip("reads a text file as the prompt; you can also drop a .txt or .md file on the app");
    same_line_if_fits(button_width("Add prompts…"));
    if (ImGui::Button("Add prompts…")) ask_for_sources(context);
    ImGui::SetItemTooltip("runs the prompts of text files, JSONL files and folders instead of one text");
    const float least = 10 * ImGui::GetFontSize();
    const float height = fills ? std::max(ImGui::GetContentRegionAvail().y - below_text_, least) : least;
    ImGui::PushFont(context.fonts.mono, 0);
    // If a key moved the focus to the view, the text field takes the keyboard.
    const bool is_focused = ImGui::IsWindowFocused(ImGuiFocusedFlags_RootAndChildWindows);
    const bool by_key = !ImGui::IsMouseDown(ImGuiMouseButton_Left) && !ImGui::IsMouseReleased(ImGuiMouseButton_Left);
    if (is_focused && !had_focus_ && by_key && form.request.context.empty()) ImGui::SetKeyboardFocusHere();
    had_focus_ = is_focused;
    wrapped_field("##context", &form.request.context, {-FLT_MIN, height});
    ImGui::PopFont();
}

void PromptForm::draw(Context& context, RunForm& form, const std::optional<TokenCount>& tokens, bool fills) {
    ImGui::SeparatorText("Prompt");
    draw_task_choice(form);
    if (form.task()) return draw_task(context, form);
    const bool is_list = !form.request.sources.empty();
    is_list ? draw_sources(context, form) : draw_text(context, form, fills);
    const float end_of_text = ImGui::GetItemRectMax().y;
    draw_count(context, form, tokens);
    draw_questions(context.theme, form.request.questions, is_list);
    draw_switches(form.request, form.n_questions());
    below_text_ = ImGui::GetItemRectMax().y - end_of_text;
}

}  // namespace kvscope::gui
