#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "app/gui/session/answer_text.h"
#include "app/gui/view/view.h"

namespace kvscope::gui {

/// The field in which the caches of runs are asked more, and what they answered so far, question by question.
class FurtherQuestions {
 public:
    /// @param room of which it may take a part
    float height(const Context& context, float room) const;
    /// In the rest of the window, which should be `height`.
    void draw(Context& context);

 private:
    /// An answer beside that of the full cache to the same question.
    struct Compared {
        std::string text;
        std::string reference;  ///< empty: not asked
        std::vector<Word> words;
    };

    void draw_field(Context& context);
    void draw_answers(Context& context, Document& document);
    /// @param run  −1 where it is gone
    /// @param full the full cache's answer to the same question
    /// @returns whether it is to be removed
    bool draw_answer(Context& context, const Document& document, const FurtherAnswer& answer, RunId run,
                     const std::string& full);
    static void draw_words(const Context& context, const FurtherAnswer& answer, const std::vector<Word>& words);
    const std::vector<Word>& words(const std::pair<int, int>& id, const FurtherAnswer& answer, const std::string& full);

    std::string question_;
    bool is_open_ = true;                               ///< answers are shown
    std::map<std::pair<int, int>, Compared> compared_;  ///< by document and answer
    float answers_height_ = 0;                          ///< in the frame before
};

}  // namespace kvscope::gui
