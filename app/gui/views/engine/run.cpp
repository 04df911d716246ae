#include <fmt/format.h>
#include <imgui.h>
#include <misc/cpp/imgui_stdlib.h>

#include <nlohmann/json.hpp>

#include "analysis/table_format.h"
#include "app/gui/actions.h"
#include "app/gui/engine_session.h"
#include "app/gui/file_dialog.h"
#include "app/gui/parameter_form.h"
#include "app/gui/run_form.h"
#include "app/gui/view.h"

namespace kvscope::gui {
namespace {

/// Model, prompt, policies and budgets for one pass of the engine.
class RunView : public View {
 public:
    void draw(Context& context) override {
        if (!context.engine) return draw_nothing(context, "This build has no engine to run models.");
        const EngineStatus status = context.engine->status();
        const auto tokens = context.engine->count_tokens(form_.request);
        draw_button(context, status, tokens);
        ImGui::BeginChild("form");
        draw_model(context, status);
        draw_prompt(context, tokens);
        draw_policies(context);
        draw_budgets(context, tokens);
        draw_output(context, status);
        ImGui::EndChild();
        if (start_wanted_ && !status.busy() && form_.problem(tokens).empty()) context.engine->run(form_.filled_in());
        start_wanted_ = start_wanted_ && status.state == EngineStatus::State::loading;  // then, when the model is there
    }

    std::vector<std::pair<std::string, std::string>> help() const override {
        return {{"Ctrl+R", "run"},
                {"a policy's name", "its parameters"},
                {"+", "the same policy once more, with other parameters"},
                {"Ctrl-click a slider", "type the number"}};
    }

    void start() override { start_wanted_ = true; }
    void save(nlohmann::json& state) const override { state = form_.to_json(); }
    void load(const nlohmann::json& state) override { form_.from_json(state); }

 private:
    void draw_button(Context& context, const EngineStatus& status, const std::optional<TokenCount>& tokens) {
        const std::string problem = form_.problem(tokens);
        if (status.busy()) {
            const bool is_cancelling = status.state == EngineStatus::State::cancelling;
            ImGui::BeginDisabled(is_cancelling);
            if (ImGui::Button("Cancel##run")) context.engine->cancel();
            ImGui::EndDisabled();
            ImGui::SameLine();
            const std::string left =
                status.seconds_left >= 0 ? fmt::format("  {:.0f} s left", status.seconds_left) : "";
            ImGui::ProgressBar(static_cast<float>(status.share), {-FLT_MIN, 0},
                               (is_cancelling ? "cancelling" : status.phase + left).c_str());
            ImGui::TextDisabled("%s", status.what.c_str());
            draw_partial_answers(*context.engine);
        } else {
            ImGui::BeginDisabled(!problem.empty());
            if (ImGui::Button("Run")) context.engine->run(form_.filled_in());
            ImGui::EndDisabled();
            ImGui::SetItemTooltip("Ctrl+R: reads the prompt once, lets every policy decide, decodes all of them");
            ImGui::SameLine();
            if (!problem.empty())
                ImGui::TextWrapped("%s", problem.c_str());
            else
                ImGui::TextDisabled("%d runs, the full cache among them", form_.n_runs());
            if (!status.error.empty()) {
                ImGui::PushStyleColor(ImGuiCol_Text, context.theme.error);
                ImGui::TextWrapped("%s", status.error.c_str());
                ImGui::PopStyleColor();
            }
        }
        ImGui::Separator();
    }

    /// What the runs have decoded so far.
    static void draw_partial_answers(const EngineSession& engine) {
        if (engine.partial_answers().empty()) return;
        ImGui::SetNextWindowSizeConstraints({0, 0}, {FLT_MAX, 14 * ImGui::GetFontSize()});
        ImGui::BeginChild("answers", {0, 0}, ImGuiChildFlags_AutoResizeY);
        for (const auto& answer : engine.partial_answers()) {
            ImGui::TextDisabled("%s", answer.label.c_str());
            ImGui::TextWrapped("%s", answer.text.c_str());
        }
        ImGui::EndChild();
    }

    void draw_model(Context& context, const EngineStatus& status) {
        ImGui::SeparatorText("Model");
        const bool is_loaded = !status.model.empty();
        ImGui::TextWrapped("%s", is_loaded ? status.model.c_str() : "the default model, loaded when it is needed");
        if (is_loaded) ImGui::SetItemTooltip("%s", status.model_path.c_str());
        ImGui::SetNextItemWidth(-5.5f * ImGui::GetFontSize());
        const bool entered = ImGui::InputTextWithHint("##model path", "GGUF file or Hugging Face folder", &model_path_,
                                                      ImGuiInputTextFlags_EnterReturnsTrue);
        if ((entered || ImGui::IsItemDeactivatedAfterEdit()) && !model_path_.empty())
            context.desk.load_model(without_tilde(model_path_));
        ImGui::SameLine();
        if (ImGui::Button("Browse…##model")) {
            context.desk.files.ask({FileDialog::Kind::open_folder_or_file,
                                    "Choose a model: a GGUF file or a folder with config.json",
                                    {".gguf"},
                                    {},
                                    [this, load = context.desk.load_model](const auto& path) {
                                        model_path_ = path.string();
                                        load(path);
                                    }});
        }
        ImGui::SetNextItemWidth(-FLT_MIN);
        if (!ImGui::BeginCombo("##recent models", "Recent models")) return;
        if (ImGui::Selectable("the default model")) {
            model_path_.clear();
            context.desk.load_model({});
        }
        const auto recent = context.desk.recent_models;
        for (const auto& path : recent) {
            if (!ImGui::Selectable(path.c_str())) continue;
            model_path_ = path;
            context.desk.load_model(path);
        }
        ImGui::EndCombo();
    }

    void draw_prompt(Context& context, const std::optional<TokenCount>& tokens) {
        ImGui::SeparatorText("Prompt");
        ImGui::SetNextItemWidth(-FLT_MIN);
        if (ImGui::BeginCombo("##sample", "Samples", ImGuiComboFlags_HeightLarge)) {
            for (const auto& [name, title] : sample_prompts()) {
                if (ImGui::Selectable(title.c_str())) take_sample(context, name);
            }
            ImGui::EndCombo();
        }
        const float em = ImGui::GetFontSize();
        ImGui::PushFont(context.fonts.mono, 0);
        ImGui::InputTextMultiline("##context", &form_.request.context, {-FLT_MIN, 10 * em},
                                  ImGuiInputTextFlags_WordWrap);
        ImGui::PopFont();
        draw_count(context, tokens);
        ImGui::SetNextItemWidth(-FLT_MIN);
        ImGui::InputTextWithHint("##question", "Question (may be empty)", &form_.request.question);
        ImGui::Checkbox("Chat template", &form_.request.use_template);
        ImGui::SetItemTooltip("the model's own, where it has one; off: the text as it stands");
        ImGui::BeginDisabled(form_.request.question.empty());
        ImGui::Checkbox("Policies see the question", &form_.request.query_aware);
        ImGui::EndDisabled();
        ImGui::PushTextWrapPos();
        ImGui::TextDisabled("%s", form_.request.question.empty() ? "without a question the whole text is compressed"
                                  : form_.request.query_aware
                                      ? "they compress context and question together: the easier task"
                                      : "the context is compressed before the question is known");
        ImGui::PopTextWrapPos();
    }

    void draw_count(const Context& context, const std::optional<TokenCount>& tokens) const {
        const EngineStatus status = context.engine->status();
        const bool is_coming = status.busy() || !status.model.empty();
        if (form_.request.context.empty()) {
            ImGui::TextDisabled("no text yet");
        } else if (!tokens) {
            ImGui::TextDisabled(is_coming ? "counting tokens …" : "tokens are counted once the model is loaded");
        } else if (!tokens->error.empty()) {
            ImGui::TextDisabled("%s", tokens->error.c_str());
        } else {
            const bool fits = tokens->n_tokens + form_.request.n_new <= tokens->context_length;
            ImGui::PushStyleColor(ImGuiCol_Text, fits ? context.theme.ink_quiet : context.theme.error);
            ImGui::TextUnformatted(fmt::format("{} tokens of a context of {}", analysis::format_count(tokens->n_tokens),
                                               analysis::format_count(tokens->context_length))
                                       .c_str());
            ImGui::PopStyleColor();
        }
    }

    void take_sample(const Context& context, const std::string& name) {
        try {
            const SamplePrompt sample = sample_prompt(name);
            form_.request.name = sample.name;
            form_.request.context = sample.context;
            form_.request.question = sample.question;
        } catch (const std::exception& error) {
            context.desk.notice(error.what(), true);
        }
    }

    void draw_policies(Context& context) {
        ImGui::SeparatorText("Policies");
        std::optional<size_t> duplicated;
        std::optional<size_t> removed;
        for (size_t i = 0; i < form_.rows.size(); ++i) {
            PolicyRow& row = form_.rows[i];
            const auto& definition = *row.spec.definition;
            ImGui::PushID(row.id);
            ImGui::Checkbox("##ticked", &row.ticked);
            ImGui::SameLine();
            const std::string changes = row.spec.values.text_of_changes();
            const std::string title =
                changes.empty() ? definition.title : fmt::format("{}  {}", definition.title, changes);
            const bool open = ImGui::TreeNodeEx(fmt::format("{}###{}", title, definition.name).c_str(),
                                                ImGuiTreeNodeFlags_SpanAvailWidth | ImGuiTreeNodeFlags_AllowOverlap);
            ImGui::SetItemTooltip("%s: %s\n%s", definition.name.c_str(), definition.summary.c_str(),
                                  definition.paper.c_str());
            ImGui::SameLine(ImGui::GetContentRegionMax().x - 2.5f * ImGui::GetFrameHeight());
            if (ImGui::SmallButton("+")) duplicated = i;
            ImGui::SetItemTooltip("the same policy once more, with other parameters");
            ImGui::SameLine();
            if (ImGui::SmallButton("−")) removed = i;
            ImGui::SetItemTooltip("takes this row away, where the policy has another");
            if (open) {
                for (const auto& parameter : definition.parameters)
                    edit_parameter(parameter, row.spec.values, context.theme, {});
                if (definition.parameters.empty()) ImGui::TextDisabled("no parameters");
                ImGui::TreePop();
            }
            ImGui::PopID();
        }
        if (duplicated) form_.duplicate(*duplicated);
        if (removed) form_.remove(*removed);
    }

    void draw_budgets(Context& context, const std::optional<TokenCount>& tokens) {
        ImGui::SeparatorText("Budgets");
        ImGui::SetNextItemWidth(-FLT_MIN);
        ImGui::InputTextWithHint("##budgets", "64,256   0.1   64-512*2", &form_.request.budgets);
        ImGui::SetItemTooltip("entries kept per KV head and layer: counts, or the share that is kept");
        try {
            for (const auto& line : form_.budget_lines(tokens)) ImGui::TextDisabled("%s", line.c_str());
        } catch (const std::invalid_argument& error) {
            ImGui::PushStyleColor(ImGuiCol_Text, context.theme.error);
            ImGui::TextWrapped("%s", error.what());
            ImGui::PopStyleColor();
        }
    }

    void draw_output(Context& context, const EngineStatus& status) {
        ImGui::SeparatorText("Output");
        ImGui::SetNextItemWidth(8 * ImGui::GetFontSize());
        ImGui::InputInt("tokens to generate", &form_.request.n_new);
        draw_spectra(status);
        std::string output = form_.request.output.string();
        ImGui::SetNextItemWidth(-5.5f * ImGui::GetFontSize());
        if (ImGui::InputTextWithHint("##output", "a new kvscope-N.h5 in this folder", &output))
            form_.request.output = output;
        ImGui::SameLine();
        if (ImGui::Button("Browse…##output")) {
            context.desk.files.ask(
                {FileDialog::Kind::save, "Where the trace goes", {".h5"}, "run.h5", [this](const auto& path) {
                     form_.request.output = path;
                 }});
        }
    }

    void draw_spectra(const EngineStatus& status) {
        const double seconds = status.spectra_seconds;
        bool wanted = form_.request.spectra.value_or(seconds <= little_for_spectra_seconds);
        if (ImGui::Checkbox("spectra of the projections", &wanted)) form_.request.spectra = wanted;
        ImGui::SetItemTooltip("eigenvalues of the Q, K and V projections into the trace, for the view Spectrum");
        if (status.model.empty())
            ImGui::TextDisabled("computed once for each model, then kept");
        else if (seconds <= 0)
            ImGui::TextDisabled("of %s they are kept already: at no cost", status.model.c_str());
        else
            ImGui::TextDisabled(
                "%s", fmt::format("about {:.{}f} s, once for {}", seconds, seconds < 10 ? 1 : 0, status.model).c_str());
    }

    RunForm form_;
    std::string model_path_;
    bool start_wanted_ = false;
};

}  // namespace

ViewKind run_view() {
    return {"run", "Run", "Policies and budgets on a prompt of yours", Dock::left,
            []() -> std::unique_ptr<View> { return std::make_unique<RunView>(); }};
}

}  // namespace kvscope::gui
