#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "app/gui/session/engine_session.h"
#include "app/gui/view/view.h"
#include "app/gui/view_data/run_form.h"

namespace kvscope::gui {

/// Form for the prompts in the Run view: text and questions, typed or from a file or sample, with token counts; or a
/// list of files and folders. If a task is chosen, the form shows the parameters of the task instead.
class PromptForm {
 public:
    explicit PromptForm(const Lifetime& lifetime) : lifetime_(lifetime) {}

    /// Takes one text file as the text. Adds other files, several files, and folders to the list of sources.
    void take_files(const std::vector<std::filesystem::path>& paths);
    void ask_for_file(Context& context);
    void ask_for_sources(Context& context);
    /// Reads the files that take_files() has set. Errors become notices. Call once per frame, before the form is used.
    void update(Context& context, RunForm& form);

    void draw(Context& context, RunForm& form, const std::optional<TokenCount>& tokens, bool fills = false);

 private:
    void draw_task(Context& context, RunForm& form) const;
    void draw_text(Context& context, RunForm& form, bool fills);
    void draw_sources(Context& context, RunForm& form);
    std::filesystem::path file_;                  ///< file to read, or empty
    std::vector<std::filesystem::path> sources_;  ///< sources to add
    bool had_focus_ = false;                      ///< whether the form had the keyboard in the last frame
    float below_text_ = 0;  ///< height of the items below the text field in the last frame, in pixels
    const Lifetime& lifetime_;
};

}  // namespace kvscope::gui
