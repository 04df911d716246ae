#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "app/gui/session/answer_text.h"
#include "app/gui/view/view.h"

namespace kvscope::gui {

/// Field for further questions to the compressed caches, and the answers by question.
class FurtherQuestions {
 public:
    /// Height for draw(), pixels. @param room available height
    float height(const Context& context, float room) const;
    void draw(Context& context);

 private:
    /// An answer and the answer of the full cache to the same question.
    struct Compared {
        std::string text;
        std::string reference;  ///< empty: the full cache was not asked
        std::vector<Word> words;
    };

    void draw_field(Context& context);
    void draw_answers(Context& context, Document& document);
    /// Draws an answer and its difference from `full`, the answer of the full cache. `run` is −1 if it no longer
    /// exists. Returns whether the user removed the answer.
    bool draw_answer(Context& context, const Document& document, const FurtherAnswer& answer, RunId run,
                     const std::string& full);
    static void draw_words(const Context& context, const FurtherAnswer& answer, const std::vector<Word>& words);
    const std::vector<Word>& words(const std::pair<int, int>& id, const FurtherAnswer& answer, const std::string& full);

    std::string question_;
    bool is_open_ = true;                               ///< whether answers are visible
    std::map<std::pair<int, int>, Compared> compared_;  ///< by document id and answer
    float answers_height_ = 0;                          ///< height in the last frame
};

}  // namespace kvscope::gui
