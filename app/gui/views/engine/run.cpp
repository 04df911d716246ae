#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "analysis/tables/table_format.h"
#include "app/gui/session/engine_session.h"
#include "app/gui/view/action_registry.h"
#include "app/gui/view/copy_command.h"
#include "app/gui/view/file_dialog.h"
#include "app/gui/view/policy_form.h"
#include "app/gui/view/prompt_form.h"
#include "app/gui/view/run_options_form.h"
#include "app/gui/view/text_field.h"
#include "app/gui/view/view.h"
#include "app/gui/view/widgets.h"
#include "app/gui/view_data/run_form.h"
#include "app/gui/view_data/runs_refused_by_policies.h"
#include "app/program/input_files.h"
#include "common/json.h"

namespace kvscope::gui {
namespace {

class RunView : public View {
 public:
    void draw(Context& context) override {
        if (!context.engine) return draw_nothing(context, "This build has no engine to run models.");
        engine_ = context.engine;
        if (const auto wanted = std::exchange(context.session.wanted_template, std::nullopt))
            form_.request.options.use_template = *wanted;
        if (const auto wanted = std::exchange(context.session.wanted_special, std::nullopt))
            form_.request.options.parse_special = *wanted;
        if (const auto wanted = std::exchange(context.session.wanted_policy, std::nullopt)) form_.use(*wanted);
        prompt_.update(context, form_);
        const EngineStatus status = context.engine->status();
        is_model_refused_ = status.is_model_refused;
        // Without a loaded model, the form uses the model of the last session.
        form_.request.model = status.model_path.empty() ? remembered_model_ : std::filesystem::path();
        // After a model was refused, the engine still counts the tokens of the previously loaded model.
        const bool is_counted = !form_.task() && !is_model_refused_;
        const auto tokens = is_counted ? context.engine->count_tokens(form_.request) : std::nullopt;
        check(context.session.tasks, tokens);
        if (start_wanted_ && problem(tokens).text.empty()) run(context);
        start_wanted_ = false;
        if (takes_call("Read prompt from file…")) prompt_.ask_for_file(context);
        if (takes_call("Add prompts…")) prompt_.ask_for_sources(context);
        if (takes_call("Restore default options")) reset_seldom_changed_options(form_.request.options);
        const bool is_wide = ImGui::GetContentRegionAvail().x >= least_for_columns * ImGui::GetFontSize();
        draw_head(context, status, tokens, is_wide);
        if (std::exchange(was_wide_, is_wide) != is_wide) scroll_to_top_ = true;  // the parts have moved
        // The form ends where the queue and the answers begin. Its rows stay in place.
        const float height = -std::max(height_below_, 1.0f);
        is_wide ? draw_in_two_columns(context, status, tokens, height)
                : draw_in_one_column(context, status, tokens, height);
        const float top = ImGui::GetCursorPosY();
        draw_switches(*context.engine);
        draw_queue(*context.engine);
        height_below_ = ImGui::GetCursorPosY() - top;
    }

    std::vector<std::string> commands() const override {
        return {"Copy command", "Read prompt from file…", "Add prompts…", "Restore default options"};
    }

    std::vector<std::pair<std::string, std::string>> help() const override {
        return {{"Ctrl+R", "run"},
                {"drop a .txt or .md file", "its text becomes the prompt"},
                {"drop several files, a .jsonl file or a folder", "adds their prompts"},
                {"Ctrl+Enter in a question", "a new line"},
                {"a policy's name", "its parameters"},
                {"+", "adds the same policy with other parameters"},
                {"Ctrl-click a slider", "type the number"},
                {"right click", "copy the form as a command line, read a file, restore defaults"}};
    }

    void start() override { start_wanted_ = true; }
    bool take_files(const std::vector<std::filesystem::path>& paths) override {
        prompt_.take_files(paths);
        return true;
    }

    void add_to_palette(std::vector<Action>& actions, const Notice& notice) override {
        const auto add = [&](const char* name, auto run, auto enabled) {
            actions.push_back({name, "Run", 0, lifetime_.guard(run), lifetime_.guard(enabled)});
        };
        const auto always = [] { return true; };
        add(
            "Copy the form as a command line",
            [this, notice] { copy_command_line([this] { return command(); }, notice); },
            [this] { return form_.problem({}).text.empty(); });
        add(
            "Select all policies that can run", [this] { tick_policies_that_can_run(form_, *check_); }, always);
        add(
            "Deselect all policies", [this] { untick_all_policies(form_); }, always);
    }

    bool holds_text() const override { return true; }
    void save(nlohmann::json& state) const override {
        state = form_.to_json();
        state["more"] = more_is_open_;
        state["model"] = remembered_model_.string();
    }
    void load(const nlohmann::json& state) override {
        if (state.is_object()) more_is_open_ = state.value("more", more_is_open_);
        // A loaded model takes precedence over the model of the last session.
        if (state.is_object() && seen_model_.empty())
            model_path_ = remembered_model_ = state.value("model", std::string());
        form_.from_json(state);
    }

 private:
    static constexpr float least_for_columns = 46;  ///< minimum width for two columns, in ems

    void begin_part(const char* name, ImVec2 size) {
        ImGui::SetNextWindowScroll({0, scroll_to_top_ ? 0.0f : -1.0f});  // negative: no change
        ImGui::BeginChild(name, size);
    }

    /// Ends a part. While the mouse is over the part, its height does not shrink, because its rows could move.
    static void end_part(const Context& context, float& least_height) {
        const float height = ImGui::GetCursorPosY();
        if (!ImGui::IsWindowHovered(ImGuiHoveredFlags_ChildWindows | ImGuiHoveredFlags_AllowWhenBlockedByActiveItem))
            least_height = 0;
        if (height < least_height) ImGui::Dummy({1, least_height - height - ImGui::GetStyle().ItemSpacing.y});
        least_height = std::max(least_height, height);
        draw_scroll_fade(context.theme);
        ImGui::EndChild();
    }

    void draw_in_one_column(Context& context, const EngineStatus& status, const std::optional<TokenCount>& tokens,
                            float height) {
        begin_part("form", {0, height});
        scroll_to_top_ = false;
        draw_model(context, status);
        prompt_.draw(context, form_, tokens);
        draw_policy_choices(context, lifetime_, form_, *check_);
        draw_budget_field(context.theme, form_, tokens);
        draw_budget_notes(context.theme, form_, tokens, *check_);
        draw_output(context, status);
        draw_more(context, status);
        draw_menu(context);
        end_part(context, form_height_);
    }

    void draw_in_two_columns(Context& context, const EngineStatus& status, const std::optional<TokenCount>& tokens,
                             float height) {
        const float gap = ImGui::GetFontSize();
        const float width = std::floor((ImGui::GetContentRegionAvail().x - gap) / 2);
        begin_part("text", {width, height});
        draw_model(context, status);
        prompt_.draw(context, form_, tokens, true);
        draw_menu(context);
        draw_scroll_fade(context.theme);
        ImGui::EndChild();
        ImGui::SameLine(0, gap);
        begin_part("form", {0, height});
        scroll_to_top_ = false;
        // The budgets are above the long list of policies, so that they are always visible. Their height is constant.
        draw_budget_field(context.theme, form_, tokens, true);
        draw_policy_choices(context, lifetime_, form_, *check_);
        draw_budget_notes(context.theme, form_, tokens, *check_);  // below the list, so that the list does not move
        draw_output(context, status);
        draw_more(context, status);
        draw_menu(context);
        end_part(context, form_height_);
    }

    void check(Tasks& tasks, const std::optional<TokenCount>& tokens) {
        const auto found = tasks.ask(checks_, "", stamp_of_refused_runs(form_, tokens),
                                     [form = form_, tokens] { return find_refused_runs(form, tokens); });
        if (found.value) check_ = found.value;
        is_checked_ = found.current;
    }

    FormProblem problem(const std::optional<TokenCount>& tokens) const {
        if (is_model_refused_) return {"The chosen model cannot be used. Choose another model."};
        if (FormProblem wrong = form_.problem(tokens); !wrong.text.empty()) return wrong;
        if (is_in_queue()) return {"This run is in progress or queued. Change the form to start another run."};
        if (engine_ && !form_.request.output.empty() && engine_->is_taken(form_.request.output))
            return {fmt::format("An unfinished run is writing {}. Choose another output.",
                                form_.request.output.filename().string())};
        // Reports no problem of budgets before the number of tokens is known, because the prompt's length decides which
        // budgets are valid. A task's samples have several lengths, so only budgets that are invalid for every length
        // are refused.
        const bool is_known = is_checked_ && (form_.task() || (tokens && tokens->error.empty()));
        return {is_known ? check_->problem() : ""};
    }

    void run(Context& context) {
        job_ = context.engine->run(form_.filled_in());
        run_form_ = form_.to_json();
    }

    bool is_in_queue() const {
        if (job_ == 0 || !engine_) return false;
        if (!engine_->has_job(job_)) return false;
        return form_.to_json() == run_form_;
    }

    /// Draws the buttons and messages with a constant height, so that the form below does not move.
    void draw_head(Context& context, const EngineStatus& status, const std::optional<TokenCount>& tokens,
                   bool is_wide) {
        const FormProblem problem = this->problem(tokens);
        const float line = ImGui::GetTextLineHeightWithSpacing();
        const float end = ImGui::GetCursorPosY() + (is_wide ? 1 : 2) * ImGui::GetFrameHeightWithSpacing() + 2 * line;
        ImGui::BeginDisabled(!problem.text.empty());
        if (ImGui::Button("Run")) run(context);
        ImGui::EndDisabled();
        tooltip_of_disabled(tooltip_of_run(status.busy()));
        ImGui::SameLine();
        draw_cancel(*context.engine, status);
        ImGui::SameLine();
        if (status.busy()) {
            const bool is_cancelling = status.state == EngineStatus::State::cancelling;
            const std::string left =
                status.seconds_left >= 0 ? fmt::format("  {:.0f} s left", status.seconds_left) : "";
            const std::string progress = is_cancelling ? "cancelling" : status.phase + left;
            same_line_if_fits(ImGui::CalcTextSize(progress.c_str()).x + ImGui::GetFontSize());
            ImGui::ProgressBar(static_cast<float>(status.share), {-FLT_MIN, 0}, progress.c_str());
        } else {
            ImGui::BeginDisabled(!form_.problem({}).text.empty());
            if (command_button("Copy command")) copy_command_line([this] { return command(); }, context.host.notice);
            ImGui::EndDisabled();
            ImGui::SetItemTooltip("copies the command that makes the same trace in a terminal");
            draw_maximise(context.host);
        }
        ImGui::SetNextWindowScroll({0, -1});
        ImGui::BeginChild("messages", {0, std::max(end - ImGui::GetCursorPosY(), line)});
        draw_messages(context, status, problem);
        draw_scroll_fade(context.theme);
        ImGui::EndChild();
        ImGui::Separator();
    }

    const char* tooltip_of_run(bool is_busy) const {
        if (is_in_queue()) return "This run is in progress or queued. Change the form to start another run.";
        return is_busy ? "Ctrl+R: adds the run to the queue; it starts when the earlier jobs have finished"
                       : "Ctrl+R: reads the prompt once, applies every policy and decodes the answers";
    }

    /// Draws the button even if there is no job, so that no other button takes its place. Cancelling is enabled half a
    /// second after a job starts, because a double click may have been meant for the previous job.
    void draw_cancel(EngineSession& engine, const EngineStatus& status) {
        constexpr double not_before_s = 0.5;
        const std::string now = status.busy() ? status.what : "";
        if (std::exchange(cancellable_, now) != now) cancellable_since_ = ImGui::GetTime();
        const bool can_cancel = status.busy() && status.state != EngineStatus::State::cancelling &&
                                ImGui::GetTime() - cancellable_since_ >= not_before_s;
        ImGui::BeginDisabled(!can_cancel);
        if (ImGui::Button("Cancel##run")) engine.cancel();
        ImGui::EndDisabled();
    }

    void draw_messages(Context& context, const EngineStatus& status, const FormProblem& problem) {
        constexpr std::array headings = {"", "Prompt", "Budgets", "Output"};  // in the order of FormProblem::Section
        if (status.busy()) quiet_text(status.what);
        if (!status.busy()) draw_continue(*context.engine);
        // An incomplete form is not an error.
        const std::string heading = headings.at(static_cast<size_t>(problem.section));
        if (is_in_queue())
            ;  // the progress or the queue shows it
        else if (form_.is_begun())
            draw_problem(heading.empty() ? problem.text : fmt::format("Cannot run. See {} below.", heading),
                         context.theme);
        else if (!status.busy())
            ImGui::TextWrapped("%s", problem.text.c_str());
        if (status.busy()) return;
        if (problem.text.empty()) draw_extent(context.theme);
        draw_problem(error_of_run(*context.engine), context.theme);
    }

    static void draw_continue(EngineSession& engine) {
        const auto stopped = engine.stopped_run();
        if (!stopped) return;
        if (ImGui::SmallButton("Continue##run")) engine.continue_stopped_run();
        ImGui::SetItemTooltip("%s\n%s", stopped->what.c_str(), stopped->rest.c_str());
        ImGui::SameLine();
        quiet_text(fmt::format("cancelled: {}. {}", stopped->what, stopped->rest));
    }

    static void draw_queue(EngineSession& engine) {
        const std::vector<WaitingJob> waiting = engine.waiting();
        if (waiting.empty()) return;
        ImGui::Separator();
        ImGui::SetNextWindowSizeConstraints({0, 0}, {FLT_MAX, 8 * ImGui::GetFontSize()});
        ImGui::SetNextWindowScroll({0, -1});
        ImGui::BeginChild("queue", {0, 0}, ImGuiChildFlags_AutoResizeY);
        ImGui::TextDisabled("Queue");
        for (const WaitingJob& job : waiting) {
            ImGui::PushID(static_cast<int>(job.number));
            if (ImGui::SmallButton("×")) engine.drop(job.number);
            ImGui::SetItemTooltip("removes the job from the queue");
            ImGui::PopID();
            ImGui::SameLine();
            ImGui::TextWrapped("%s", job.what.c_str());
        }
        ImGui::EndChild();
    }

    /// Returns the error of the run that this form started, until the form is changed.
    std::string error_of_run(const EngineSession& engine) {
        std::string error = engine.error_of(job_);
        if (error.empty() || form_.to_json() == run_form_) return error;
        job_ = 0;
        return {};
    }

    static void draw_maximise(const ViewHost& host) {
        const bool is_maximised = host.is_maximised;
        if (!is_maximised && ImGui::GetWindowWidth() >= least_for_columns * ImGui::GetFontSize()) return;
        const char* label = is_maximised ? "Restore" : "Maximize";
        same_line_if_fits(button_width(label));
        if (ImGui::Button(label)) host.toggle_maximised();
        ImGui::SetItemTooltip(is_maximised ? "M: restores the other views" : "M: maximizes the form, in two columns");
    }

    void draw_extent(const Theme& theme) const {
        const int n = form_.n_prompts();
        const bool share = n > 1 && !form_.request.options.query_aware && !form_.request.options.isolated;
        std::string text =
            fmt::format("{} runs including the full cache{}", form_.n_runs(), form_.task() ? ", for each sample" : "");
        if (n > 1)
            text += fmt::format(", on {} prompts ({} runs in total){}", n, analysis::format_count(n * form_.n_runs()),
                                share ? " that share one prefill if their contexts have the same tokens" : "");
        quiet_text(text);
        if (const int refused = is_checked_ ? check_->n_refused() : 0; refused > 0)
            wrapped_text(fmt::format("{} of these runs will fail. Hover over a mark to see the reason. All other runs "
                                     "will start.",
                                     refused),
                         theme.warning);
    }

    std::string command() const {
        RunForm form = form_;
        std::filesystem::path model;
        if (engine_) {
            const EngineStatus status = engine_->status();
            model = status.model_path.empty() ? remembered_model_ : status.model_path;
            form.request.spectra = spectra_wanted(status);
        }
        return form.command(is_default(model) ? std::filesystem::path() : model);
    }

    static bool is_default(const std::filesystem::path& model) {
        try {
            return model.empty() || model == program::default_model();
        } catch (const std::exception&) {
            return false;
        }
    }

    bool spectra_wanted(const EngineStatus& status) const {
        return form_.request.spectra.value_or(status.spectra_seconds <= little_for_spectra_seconds);
    }

    /// Lists the runs whose cache can now switch between compressed and full. The view Answers shows their text.
    static void draw_switches(EngineSession& engine) {
        const auto& answers = engine.partial_answers();
        const bool any = std::ranges::any_of(answers, [](const auto& one) { return one.is_full.has_value(); });
        if (!any) return;
        ImGui::SetNextWindowSizeConstraints({0, 0}, {FLT_MAX, 14 * ImGui::GetFontSize()});
        ImGui::SetNextWindowScroll({0, -1});
        ImGui::BeginChild("answers", {0, 0}, ImGuiChildFlags_AutoResizeY);
        for (const auto& answer : answers) {
            if (!answer.is_full) continue;
            draw_switch(engine, answer);  // before the label, which may be wider than the view
            ImGui::TextDisabled("%s", answer.label.c_str());
            item_tooltip(answer.label);
            ImGui::TextWrapped("%s", answer.text.c_str());
        }
        ImGui::EndChild();
    }

    static void draw_switch(EngineSession& engine, const PartialAnswer& answer) {
        const bool is_full = *answer.is_full;
        const bool is_cancelling = engine.status().state == EngineStatus::State::cancelling;
        ImGui::PushID(answer.run);
        ImGui::BeginDisabled(answer.has_ended || is_cancelling);
        if (ImGui::SmallButton(is_full ? "Compress" : "Make full")) engine.switch_cache(answer.run);
        ImGui::EndDisabled();
        ImGui::PopID();
        tooltip_of_disabled(why_to_switch(answer, is_cancelling));
        ImGui::SameLine();
    }

    static std::string why_to_switch(const PartialAnswer& answer, bool is_cancelling) {
        if (is_cancelling) return "The run is being cancelled, so no further step is decoded.";
        if (answer.has_ended)
            return "The answer is complete, so the cache can no longer change. The answer is being compared with the "
                   "full cache's answer.";
        return *answer.is_full ? "The cache holds full keys and values of all tokens. From the next step on, they are "
                                 "stored in the policy's compressed form. The trace records the step."
                               : "The cache is compressed. From the next step on, it holds full keys and values, "
                                 "computed from the compressed cache. The trace records the step.";
    }

    void load_model(Context& context, const std::filesystem::path& path) {
        job_ = 0;  // the error belongs to another model
        remembered_model_ = path;
        context.host.load_model(path);
    }

    void draw_model(Context& context, const EngineStatus& status) {
        ImGui::SeparatorText("Model");
        const bool is_loaded = !status.model.empty();
        if (status.model_path != seen_model_) {  // also a model that was dropped or chosen elsewhere
            seen_model_ = status.model_path;
            model_path_ = is_default(seen_model_) ? "" : seen_model_.string();
            remembered_model_ = model_path_;
        } else if (!status.model_error.empty() && !status.busy()) {
            remembered_model_ = is_default(seen_model_) ? "" : seen_model_;  // only models that could be loaded
        }
        if (status.model_error.empty()) {
            const std::string to_load =
                (remembered_model_.empty() ? "the default model" : remembered_model_.filename().string()) +
                ", loaded when needed";
            ImGui::TextWrapped("%s", is_loaded ? status.model.c_str() : to_load.c_str());
            if (is_loaded) item_tooltip(status.model_path);
            if (!status.device.empty()) quiet_text("on " + status.device);
        }
        ImGui::SetNextItemWidth(-5.5f * ImGui::GetFontSize());
        const bool entered =
            text_field("##model path", "GGUF file or folder", &model_path_, ImGuiInputTextFlags_EnterReturnsTrue);
        const bool is_chosen = entered || ImGui::IsItemDeactivatedAfterEdit();
        ImGui::SetItemTooltip("a GGUF file, or a Hugging Face folder with config.json");
        if (is_chosen) load_model(context, expand_tilde(model_path_));
        ImGui::SameLine();
        if (ImGui::Button("Browse…##model")) {
            context.host.files.ask({.kind = FileDialog::Kind::open_folder_or_file,
                                    .title = "Choose a model: a GGUF file or a folder with config.json",
                                    .extensions = {".gguf"},
                                    .answer =
                                        [this, load = context.host.load_model](const auto& path) {
                                            job_ = 0;
                                            model_path_ = path.string();
                                            load(path);
                                        },
                                    .asker = lifetime_.watch()});
        }
        draw_problem(status.model_error, context.theme);
        ImGui::SetNextItemWidth(-FLT_MIN);
        if (!ImGui::BeginCombo("##recent models", "Recent models")) return;
        if (ImGui::Selectable("the default model")) {
            model_path_.clear();
            load_model(context, {});
        }
        for (const std::string& path : std::vector(context.host.recent_models)) {  // loading a model changes the list
            if (!ImGui::Selectable(path.c_str())) continue;
            model_path_ = path;
            load_model(context, path);
        }
        ImGui::EndCombo();
    }

    void draw_output(Context& context, const EngineStatus& status) {
        ImGui::SeparatorText("Output");
        const char* label = "tokens to generate";
        const float room = ImGui::GetContentRegionAvail().x - ImGui::CalcTextSize(label).x;
        const float em = ImGui::GetFontSize();
        ImGui::SetNextItemWidth(std::clamp(room - ImGui::GetStyle().ItemInnerSpacing.x, 5 * em, 8 * em));
        const int64_t step = 1, fast = 100;
        ImGui::InputScalar(label, ImGuiDataType_S64, &form_.request.options.n_new, &step, &fast);
        draw_problem(form_.problem_with(&RunOptions::n_new), context.theme);
        if (!form_.task()) draw_stored();
        if (!form_.task() && !form_.request.options.stores_only_rows()) draw_spectra(status);
        std::string output = form_.request.output.string();
        ImGui::SetNextItemWidth(-5.5f * ImGui::GetFontSize());
        if (text_field("##output", "a new kvscope-N.h5", &output)) {
            form_.request.output = output;
            form_.request.force = false;  // the user agreed to replace another file
        }
        ImGui::SameLine();
        if (ImGui::Button("Browse…##output")) {
            context.host.files.ask({.kind = FileDialog::Kind::save,
                                    .title = "Choose the output file",
                                    .extensions = {".h5"},
                                    .suggestion = "run.h5",
                                    .answer =
                                        [this](const auto& path) {
                                            form_.request.output = path;
                                            std::error_code error;
                                            form_.request.force = std::filesystem::exists(path, error);
                                        },
                                    .asker = lifetime_.watch()});
        }
        ImGui::BeginDisabled(form_.request.output.empty());
        ImGui::Checkbox("replace existing file", &form_.request.force);
        ImGui::EndDisabled();
        const std::string problem = form_.output_problem();
        if (problem.empty()) quiet_text(output_note());
        draw_problem(problem, context.theme);
    }

    /// Returns a note about the output file. Checks the file once per second and after input.
    const std::string& output_note() {
        const std::pair of(form_.request.output, form_.request.force);
        if (of != note_of_ || ImGui::GetTime() >= note_until_) {
            const std::filesystem::path begun = engine_->continued_output(form_.filled_in());
            note_ =
                begun.empty() ? form_.output_note() : fmt::format("{}: continues the interrupted run", begun.string());
            note_of_ = of;
            note_until_ = ImGui::GetTime() + 1;
        }
        return note_;
    }

    void draw_more(Context& context, const EngineStatus& status) {
        const std::string changes = changed_options_text(form_.applied_options());
        ImGui::Separator();
        ImGui::SetNextItemOpen(more_is_open_);
        ImGui::PushStyleColor(ImGuiCol_Text, changes.empty() ? context.theme.ink : context.theme.accent);
        more_is_open_ =
            ImGui::TreeNodeEx(fmt::format("More  {}###more", changes).c_str(), ImGuiTreeNodeFlags_SpanAvailWidth);
        ImGui::PopStyleColor();
        if (more_is_open_ && ImGui::IsItemToggledOpen())  // otherwise the part opens below the visible area
            ImGui::SetScrollFromPosY(ImGui::GetItemRectMin().y - ImGui::GetWindowPos().y, 0);
        ImGui::SetItemTooltip("%s%s%s",
                              form_.task() ? "number type, device"
                                           : "sampling, seeds, number type, device, isolated runs, recorded window",
                              changes.empty() ? "" : "\nchanged from the default: ", changes.c_str());
        if (!more_is_open_) return;
        engine_->look_for_devices();
        edit_run_options(form_.request.options, form_.task() != nullptr, status.devices, status.why_only_cpu,
                         context.theme);
        ImGui::BeginDisabled(changes.empty());
        if (ImGui::Button("Restore defaults##more")) reset_seldom_changed_options(form_.request.options);
        ImGui::EndDisabled();
        ImGui::TreePop();
    }

    void draw_menu(Context& context) {
        if (!ImGui::BeginPopupContextWindow("form menu")) return;
        if (ImGui::MenuItem("Copy the form as a command line", nullptr, false, form_.problem({}).text.empty()))
            copy_command_line([this] { return command(); }, context.host.notice);
        if (ImGui::MenuItem("Read prompt from file…")) prompt_.ask_for_file(context);
        if (ImGui::MenuItem("Add prompts…")) prompt_.ask_for_sources(context);
        if (ImGui::MenuItem("Restore default options", nullptr, false,
                            !changed_options_text(form_.applied_options()).empty()))
            reset_seldom_changed_options(form_.request.options);
        ImGui::EndPopup();
    }

    void draw_stored() {
        const auto& amounts = engine::run_option(&RunOptions::stored).choices;
        std::string& stored = form_.request.options.stored;
        auto choice = static_cast<int>(std::ranges::find(amounts, stored) - amounts.begin());
        ImGui::SetNextItemWidth(
            std::min(11 * ImGui::GetFontSize(), ImGui::GetContentRegionAvail().x - ImGui::CalcTextSize("stored ").x));
        if (ImGui::Combo("stored", &choice, "everything\0measures per head\0only rows of results\0"))
            stored = amounts[static_cast<size_t>(choice)];
        ImGui::SetItemTooltip(
            "Measures per head include the kept entries, but not attention, scores and query similarities of single "
            "tokens. Rows of results are the scores and mean measures of each run. Both need little space.");
    }

    void draw_spectra(const EngineStatus& status) {
        const double seconds = status.spectra_seconds;
        bool wanted = spectra_wanted(status);
        if (ImGui::Checkbox("spectra of the projections", &wanted)) form_.request.spectra = wanted;
        ImGui::SetItemTooltip("stores eigenvalues of the Q, K and V projections in the trace, for the view Spectrum");
        ImGui::PushTextWrapPos();
        if (status.model.empty())
            ImGui::TextDisabled("computed once for each model, then cached");
        else if (seconds <= 0)
            ImGui::TextDisabled("already cached for %s", status.model.c_str());
        else
            disabled_text(fmt::format("about {:.{}f} s, once for {}", seconds, seconds < 10 ? 1 : 0, status.model));
        ImGui::PopTextWrapPos();
    }

    RunForm form_;
    bool was_wide_ = false;
    bool scroll_to_top_ = false;
    TaskSlot<RefusedRuns> checks_;
    std::shared_ptr<const RefusedRuns> check_ = std::make_shared<const RefusedRuns>();
    bool is_checked_ = false;  ///< whether `check_` belongs to the current form
    PromptForm prompt_{lifetime_};
    EngineSession* engine_ = nullptr;
    std::string model_path_;
    std::filesystem::path seen_model_;
    std::filesystem::path remembered_model_;  ///< model that was last loaded; empty for the default model
    std::string note_;
    std::pair<std::filesystem::path, bool> note_of_;
    double note_until_ = 0;
    bool more_is_open_ = false;
    bool start_wanted_ = false;
    uint64_t job_ = 0;         ///< last job that this form started, or 0
    nlohmann::json run_form_;  ///< state of the form when that job was started
    std::string cancellable_;  ///< job that can be cancelled, or empty
    double cancellable_since_ = 0;
    float height_below_ = 0;  ///< height of the queue and answers in the last frame, in pixels
    float form_height_ = 0;   ///< height of the form while the mouse is over it, in pixels
    bool is_model_refused_ = false;
};

}  // namespace

ViewKind run_view() {
    return {"run",      "Run",       "Runs policies and budgets on your own prompt or a task",
            Dock::left, Topic::runs, make_view<RunView>,
            R"(
----------------
-.######..####.-
-.####.........-
----------------
................
*..#####...----.
-..###.....----.
.........*******)"};
}

}  // namespace kvscope::gui
