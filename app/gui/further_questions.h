#pragma once

#include <string>

#include "app/gui/view.h"

namespace kvscope::gui {

/// The field in which the selected run's cache is asked more, and what it answered so far.
class FurtherQuestions {
 public:
    float height(const Context& context) const;
    void draw(Context& context);

 private:
    std::string question_;
};

}  // namespace kvscope::gui
