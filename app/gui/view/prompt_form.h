#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "app/gui/session/engine_session.h"
#include "app/gui/session/run_form.h"
#include "app/gui/view/view.h"

namespace kvscope::gui {

/// The part of the run's form that is its text and its questions: typed, from a file or from a sample, with how many
/// tokens they are.
class PromptForm {
 public:
    /// @param lifetime of the view that it is a part of
    explicit PromptForm(const Lifetime& lifetime) : lifetime_(lifetime) {}

    /// A file whose text is to become the prompt's.
    void take_file(const std::filesystem::path& path) { file_ = path; }
    /// Lets a person choose one.
    void ask_for_file(Context& context);
    /// Once a frame, before anything looks at the form: reads a file that was taken. What is wrong with it is told.
    void update(Context& context, RunForm& form);

    /// @param tokens as far as they were counted
    /// @param fills  the text takes the height that the rest leaves of the window
    void draw(Context& context, RunForm& form, const std::optional<TokenCount>& tokens, bool fills = false);

 private:
    std::filesystem::path file_;  ///< to be read
    bool had_focus_ = false;      ///< in the last frame
    float below_text_ = 0;        ///< pixels of what stood there in the last frame
    const Lifetime& lifetime_;
};

}  // namespace kvscope::gui
