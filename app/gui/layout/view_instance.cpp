#include "app/gui/layout/view_instance.h"

#include <fmt/format.h>

namespace kvscope::gui {

std::string OpenView::id() const { return fmt::format("{}-{}", kind->name, number); }

std::string OpenView::title() const {
    return number == 1 ? fmt::format("{}###{}", kind->title, id())
                       : fmt::format("{} {}###{}", kind->title, number, id());
}

}  // namespace kvscope::gui
