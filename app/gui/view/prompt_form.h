#pragma once

#include <filesystem>
#include <optional>

#include "app/gui/session/engine_session.h"
#include "app/gui/view/view.h"
#include "app/gui/view_data/run_form.h"

namespace kvscope::gui {

/// Form for the prompt in the Run view: text and questions, typed or from a file or sample, with token counts. If a
/// task is chosen, the form shows the parameters of the task instead.
class PromptForm {
 public:
    explicit PromptForm(const Lifetime& lifetime) : lifetime_(lifetime) {}

    void take_file(const std::filesystem::path& path) { file_ = path; }
    void ask_for_file(Context& context);
    /// Reads the file that take_file() has set. Errors become notices. Call once per frame, before the form is used.
    void update(Context& context, RunForm& form);

    void draw(Context& context, RunForm& form, const std::optional<TokenCount>& tokens, bool fills = false);

 private:
    void draw_task(Context& context, RunForm& form) const;
    std::filesystem::path file_;  ///< file to read, or empty
    bool had_focus_ = false;      ///< whether the form had the keyboard in the last frame
    float below_text_ = 0;        ///< height of the items below the text field in the last frame, in pixels
    const Lifetime& lifetime_;
};

}  // namespace kvscope::gui
