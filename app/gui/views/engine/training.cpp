#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "analysis/shell_command.h"
#include "app/gui/figure/figure_plot.h"
#include "app/gui/session/engine_session.h"
#include "app/gui/session/session.h"
#include "app/gui/session/whole_path.h"
#include "app/gui/view/copy_command.h"
#include "app/gui/view/file_dialog.h"
#include "app/gui/view/text_field.h"
#include "app/gui/view/view.h"
#include "app/gui/view/widgets.h"
#include "common/json.h"

namespace kvscope::gui {
namespace {

analysis::Figure curve_of(const TrainingStatus& training) {
    analysis::Figure figure;
    figure.name = "training";
    figure.title = "Loss at each training step";
    figure.columns = std::max<size_t>(training.stages.size(), 1);
    for (size_t i = 0; i < training.stages.size(); ++i) {
        const auto& stage = training.stages[i];
        const bool in_nats = stage.loss == "qk-kl";
        analysis::Panel panel;
        panel.column = i;
        panel.title = stage.loss == "keys-values" ? "stage 1: keys and values"
                      : in_nats                   ? "stage 2: attention"
                                                  : "stage 2: attention's outputs";
        analysis::Line line;
        double most = 0;
        for (size_t step = 0; step < stage.errors.size(); ++step) {
            line.x.push_back(static_cast<double>(step) + 1);
            line.y.push_back(in_nats ? stage.errors[step] : 100 * stage.errors[step]);
            if (std::isfinite(line.y.back())) most = std::max(most, line.y.back());
        }
        panel.x.title = "Step";
        panel.x.max = std::max(2.0, static_cast<double>(stage.errors.size()));
        panel.x.min = 1;
        panel.x.whole_numbers = true;
        panel.y.title = in_nats ? "Divergence" : "Missed";
        panel.y.unit = in_nats ? "nats" : "%";
        panel.y.max = most > 0 ? 1.05 * most : 1;
        panel.shapes.emplace_back(std::move(line));
        figure.panels.push_back(std::move(panel));
    }
    return figure;
}

class TrainingView : public View {
 public:
    void draw(Context& context) override {
        if (!context.engine) return draw_nothing(context, "This build has no engine to train maps.");
        ImGui::TextWrapped(
            "Trains the maps with which EchoKV reconstructs keys and values of %s.",
            context.engine->status().model.empty() ? "the default model" : context.engine->status().model.c_str());
        const EngineStatus status = context.engine->status();
        ImGui::BeginDisabled(status.busy());
        draw_form(context);
        ImGui::EndDisabled();
        draw_button(context, status);
        draw_result(context, context.engine->training());
    }

    std::vector<std::string> commands() const override { return {"Train", "Copy command"}; }

    std::vector<std::pair<std::string, std::string>> help() const override {
        return {{"Train", "least squares: no steps, a few seconds per thousand tokens"},
                {"Cancel", "finished steps are kept; the same form continues from there"},
                {"Copy command", "copies the kvscope train-echo … command that makes the same maps"},
                {"drag, wheel on the curve", "pan, zoom; double-click shows the whole curve"}};
    }

    void fit() override { plot_.fit(); }
    bool holds_text() const override { return true; }
    void save(nlohmann::json& state) const override {
        state = {{"texts", text_},
                 {"ratio", request_.ratio},
                 {"tokens", request_.n_tokens},
                 {"descent", request_.by_descent},
                 {"steps", request_.steps},
                 {"tune", request_.tune_steps},
                 {"qk", request_.tune_by_qk},
                 {"output", output_}};
    }
    void load(const nlohmann::json& state) override {
        text_ = state.value("texts", "");
        request_.ratio = std::clamp(state.value("ratio", 0.5), 0.05, 0.95);
        request_.n_tokens = std::max<int64_t>(state.value("tokens", int64_t{0}), 0);
        request_.by_descent = state.value("descent", false);
        request_.steps = std::max<int64_t>(state.value("steps", int64_t{600}), 1);
        request_.tune_steps = std::max<int64_t>(state.value("tune", int64_t{0}), 0);
        request_.tune_by_qk = state.value("qk", false);
        output_ = state.value("output", output_);
    }

 private:
    /// Draws a label to the left of a field, or above it in a narrow view. Keeps the width `after` free after the
    /// field.
    static void label_field(const char* label, float after = 0) {
        const float em = ImGui::GetFontSize();
        const bool is_narrow = ImGui::GetContentRegionAvail().x < 26 * em;
        if (!is_narrow) ImGui::AlignTextToFramePadding();
        ImGui::TextUnformatted(label);
        if (!is_narrow) ImGui::SameLine(10 * em);
        ImGui::SetNextItemWidth(std::max(std::min(ImGui::GetContentRegionAvail().x - after, 40 * em), 2 * em));
    }

    static float browse_width() {
        const ImGuiStyle& style = ImGui::GetStyle();
        return ImGui::CalcTextSize("Browse…").x + 2 * style.FramePadding.x + style.ItemSpacing.x;
    }

    void draw_form(Context& context) {
        label_field("Text", browse_width());
        text_field("##text", "bundled English text", &text_);
        ImGui::SameLine();
        if (ImGui::Button("Browse…##text"))
            context.host.files.ask({.kind = FileDialog::Kind::open,
                                    .title = "Choose a training text",
                                    .extensions = {".txt", ".md"},
                                    .answer = [this](const std::filesystem::path& path) { text_ = path.string(); },
                                    .asker = lifetime_.watch()});
        label_field("Ratio");
        auto ratio = static_cast<float>(request_.ratio);
        if (ImGui::SliderFloat("##ratio", &ratio, 0.05f, 0.95f, "%.2f", ImGuiSliderFlags_AlwaysClamp))
            request_.ratio = std::round(static_cast<double>(ratio) * 100) / 100;
        ImGui::SetItemTooltip(
            "Share of the full cache's bytes that remains. The nearest share that the model's dimensions allow is "
            "used.");
        draw_count("Tokens", request_.n_tokens, 0, "Maximum number of tokens read from the text; 0: all.");
        int stage1 = request_.by_descent ? 1 : 0;
        label_field("Stage 1");
        if (ImGui::Combo("##Stage 1", &stage1, "least squares\0gradient descent\0")) request_.by_descent = stage1 == 1;
        ImGui::SetItemTooltip(
            "Fits keys and values directly by least squares, or step by step by gradient descent as in the paper.");
        if (request_.by_descent)
            draw_count("Steps of stage 1", request_.steps, 1, "Number of steps, 600 in the paper.");
        draw_count("Steps of stage 2", request_.tune_steps, 0,
                   "Steps of gradient descent on the attention's output, 1000 in the paper; 0 skips stage 2.");
        if (request_.tune_steps > 0) {
            int loss = request_.tune_by_qk ? 1 : 0;
            label_field("Loss of stage 2");
            if (ImGui::Combo("##Loss of stage 2", &loss, "attention's outputs\0the attention itself\0"))
                request_.tune_by_qk = loss == 1;
        }
        label_field("Output", browse_width());
        text_field("##output", "", &output_);
        ImGui::SameLine();
        if (ImGui::Button("Browse…##output"))
            context.host.files.ask({.kind = FileDialog::Kind::save,
                                    .title = "Choose the file for the maps",
                                    .extensions = {".safetensors"},
                                    .suggestion = "echo.safetensors",
                                    .answer = [this](const std::filesystem::path& path) { output_ = path.string(); },
                                    .asker = lifetime_.watch()});
    }

    static void draw_count(const char* label, int64_t& count, int64_t least, const char* help) {
        label_field(label);
        const int64_t step = 100;
        ImGui::InputScalar(fmt::format("##{}", label).c_str(), ImGuiDataType_S64, &count, &step);
        count = std::max(count, least);
        item_tooltip(help);
    }

    TrainingRequest filled_in() const {
        TrainingRequest request = request_;
        if (!text_.empty()) request.texts = {expand_tilde(text_)};
        request.output = expand_tilde(output_);
        return request;
    }

    std::string problem() const {
        std::error_code error;
        if (output_.empty()) return "enter a file name for the maps";
        if (!text_.empty() && !std::filesystem::is_regular_file(expand_tilde(text_), error))
            return text_ + " is not a file";
        if (std::filesystem::exists(expand_tilde(output_), error))
            return output_ + " already exists. Name another file";
        return {};
    }

    void draw_button(Context& context, const EngineStatus& status) {
        const bool is_own = status.busy() && status.what.ends_with(": training");
        const std::string wrong = problem();
        ImGui::BeginDisabled(status.busy() || !wrong.empty());
        if (command_button("Train")) context.engine->train(filled_in());
        ImGui::EndDisabled();
        ImGui::SameLine();
        if (is_own) {
            ImGui::BeginDisabled(status.state == EngineStatus::State::cancelling);
            if (ImGui::Button("Cancel##training")) context.engine->cancel();
            ImGui::EndDisabled();
            ImGui::SameLine();
            const std::string left =
                status.seconds_left >= 0 ? fmt::format("  {:.0f} s left", status.seconds_left) : "";
            ImGui::ProgressBar(static_cast<float>(status.share), {-FLT_MIN, 0}, (status.phase + left).c_str());
            return;
        }
        ImGui::BeginDisabled(output_.empty());
        if (command_button("Copy command"))
            copy_command_line([&] { return command(status.model_path); }, context.host.notice);
        ImGui::EndDisabled();
        if (status.busy()) {
            ImGui::PushTextWrapPos();
            ImGui::TextDisabled("waits until %s has finished", status.what.c_str());
            ImGui::PopTextWrapPos();
        }
        // An existing file is no error if it contains the maps that were just trained.
        const TrainingStatus& training = context.engine->training();
        const bool is_success = training.is_done && training.output == filled_in().output;
        if (!wrong.empty() && !status.busy() && !is_success) ImGui::TextWrapped("%s", wrong.c_str());
    }

    std::string command(const std::filesystem::path& model) const {
        const TrainingRequest request = filled_in();
        analysis::ShellCommand command("kvscope train-echo");
        for (const auto& text : request.texts) command.add_path(text);
        command.add("--ratio", fmt::format("{:g}", request.ratio));
        if (request.n_tokens > 0) command.add("--tokens", std::to_string(request.n_tokens));
        if (request.by_descent) {
            command.add("--stage1", "adamw");
            command.add("--steps", std::to_string(request.steps));
        }
        if (request.tune_steps > 0) command.add("--tune", std::to_string(request.tune_steps));
        if (request.tune_steps > 0 && request.tune_by_qk) command.add("--tune-loss", "qk-kl");
        if (!model.empty()) command.add_path("-m", model);
        command.add_path("-o", request.output);
        return command.text();
    }

    void draw_result(Context& context, const TrainingStatus& training) {
        if (!training.error.empty()) wrapped_text(training.error, context.theme.error);
        for (const auto& message : training.messages) ImGui::TextWrapped("%s", message.c_str());
        if (training.is_done) {
            ImGui::TextWrapped("The maps are in %s.", training.output.c_str());
            if (ImGui::Button("Use in Run")) {
                context.session.wanted_policy = {"echokv", "maps", absolute_path(training.output).string()};
                context.host.show_view("run");
            }
            ImGui::SetItemTooltip("selects EchoKV in Run with these maps");
            ImGui::SameLine();
            if (ImGui::Button("Copy the policy")) {
                const std::string policy = "echokv:maps=" + training.output.string();
                ImGui::SetClipboardText(policy.c_str());
                context.host.notice("copied: " + policy, false);
            }
            ImGui::SetItemTooltip("copies the value for --policy");
        }
        if (training.stages.empty()) return;
        if (!curve_ || curve_stamp_ != training.stamp) {
            curve_ = std::make_shared<const PreparedFigure>(prepare_figure(curve_of(training)));
            curve_stamp_ = training.stamp;
        }
        plot_.draw(context, "training curve", {0, 0}, curve_, {});
    }

    TrainingRequest request_;
    std::string text_, output_ = "echo.safetensors";
    FigurePlot plot_;
    std::shared_ptr<const PreparedFigure> curve_;
    uint64_t curve_stamp_ = 0;
};

}  // namespace

ViewKind training_view() {
    return {
        "training",  "Training",  "Trains the maps with which EchoKV reconstructs keys and values, and shows the loss",
        Dock::right, Topic::runs, make_view<TrainingView>,
        R"(
#*..............
#.*.............
#.*.............
#..*............
#...**..........
#.....***.......
#........*******
################)"};
}

}  // namespace kvscope::gui
