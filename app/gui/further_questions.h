#pragma once

#include <string>

#include "app/gui/view.h"

namespace kvscope::gui {

/// The field in which the caches of runs are asked more, and what they answered so far, question by question.
class FurtherQuestions {
 public:
    /// @param room of which it may take a part
    float height(const Context& context, float room) const;
    void draw(Context& context, float height);

 private:
    void draw_field(Context& context);
    void draw_answers(Context& context, Document& document);

    std::string question_;
    float answers_height_ = 0;  ///< in the frame before
};

}  // namespace kvscope::gui
