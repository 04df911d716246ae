#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "app/gui/view/view.h"
#include "app/gui/view_data/text_diff.h"

namespace kvscope::gui {

/// Draws a field for further questions to the compressed caches, and the answers grouped by question.
class FurtherQuestions {
 public:
    /// Returns the height that draw() needs. @param room available height in pixels
    [[nodiscard]] float height(const Context& context, float room) const;
    void draw(Context& context);

 private:
    /// An answer and the answer of the full cache to the same question.
    struct Compared {
        std::string text;
        std::string reference;  ///< answer of the full cache, or empty if the full cache was not asked
        std::vector<Word> words;
    };

    void draw_field(Context& context);
    void draw_answers(Context& context, Document& document);
    /// Draws an answer and its differences from the full cache's answer. Returns whether the user removed the answer.
    /// @param run −1 if the run no longer exists
    [[nodiscard]] bool draw_answer(Context& context, const Document& document, const FurtherAnswer& answer, RunId run,
                                   const std::string& full);
    static void draw_words(const Context& context, const FurtherAnswer& answer, const std::vector<Word>& words);
    [[nodiscard]] const std::vector<Word>& words(const std::pair<int, int>& id, const FurtherAnswer& answer,
                                                 const std::string& full);

    std::string question_;
    bool is_open_ = true;                               ///< whether answers are visible
    std::map<std::pair<int, int>, Compared> compared_;  ///< differences by document id and answer
    float answers_height_ = 0;                          ///< height of the answers in the last frame, in pixels
};

}  // namespace kvscope::gui
