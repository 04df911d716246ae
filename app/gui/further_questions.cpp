#include "app/gui/further_questions.h"

#include <fmt/format.h>
#include <imgui.h>
#include <misc/cpp/imgui_stdlib.h>

#include <algorithm>

#include "app/gui/engine_session.h"
#include "app/gui/run_label.h"
#include "app/gui/shaped_text.h"

namespace kvscope::gui {
namespace {

const RunKey* askable(const Context& context) {
    const RunKey& selected = context.session.cursor().run;
    if (!context.engine || !context.session.exists(selected) || !context.engine->can_ask(selected)) return nullptr;
    return &selected;
}

}  // namespace

float FurtherQuestions::height(const Context& context) const {
    if (!context.engine) return 0;
    const float line = ImGui::GetTextLineHeightWithSpacing();
    const auto n = static_cast<float>(std::min<size_t>(context.engine->further_answers().size(), 3));
    const float answers = 3 * n * line;
    return (askable(context) ? ImGui::GetFrameHeightWithSpacing() : 0) + answers;
}

void FurtherQuestions::draw(Context& context) {
    if (const RunKey* run = askable(context)) {
        const std::string hint = fmt::format("ask the cache of {} another question", context.session.look(*run).label);
        ImGui::SetNextItemWidth(-6 * ImGui::GetFontSize());
        const bool entered = ImGui::InputTextWithHint("##answers question", hint.c_str(), &question_,
                                                      ImGuiInputTextFlags_EnterReturnsTrue);
        ImGui::SameLine();
        ImGui::BeginDisabled(question_.empty());
        const bool pressed = ImGui::Button("Ask##answers", {-1, 0});
        ImGui::EndDisabled();
        ImGui::SetItemTooltip("the very cache that this run compressed goes on with this question");
        if ((entered || pressed) && !question_.empty()) {
            context.engine->ask(*run, question_);
            question_.clear();
        }
    }
    const auto& answers = context.engine->further_answers();
    if (answers.empty()) return;
    ImGui::BeginChild("further answers");
    for (size_t i = answers.size(); i-- > 0;) {
        const FurtherAnswer& answer = answers[i];
        const std::string run = context.session.exists(answer.run) ? context.session.look(answer.run).label : "closed";
        ImGui::TextDisabled("%s", run.c_str());
        ImGui::SameLine();
        ImGui::PushFont(context.fonts.bold, 0);
        text_item(answer.question);
        ImGui::PopFont();
        ImGui::PushTextWrapPos(0);
        if (!answer.error.empty())
            ImGui::TextColored(context.theme.error, "%s", answer.error.c_str());
        else
            ImGui::TextUnformatted((answer.text + (answer.finished ? "" : " …")).c_str());
        ImGui::PopTextWrapPos();
    }
    ImGui::EndChild();
}

}  // namespace kvscope::gui
