#pragma once

#include <map>
#include <optional>
#include <string>

#include "app/gui/figure/report_choices.h"
#include "app/gui/view/view.h"
#include "app/papers/paper.h"

namespace kvscope::gui {

/// The list of figures and tables of papers. Each says whether the trace in focus can show it.
class PaperItems {
 public:
    /// Draws the papers, each with its items, for the document in focus. @returns an item that the user has clicked, if
    /// the trace can show it
    [[nodiscard]] const papers::PaperItem* draw(Context& context);

 private:
    TaskSlot<std::map<std::string, std::string>> reasons_;  ///< why the trace cannot show an item, by full id
};

/// Returns the choices that make the item's figure of a document.
[[nodiscard]] ReportChoices choices_of_item(const papers::PaperItem& item, const Document& document);

}  // namespace kvscope::gui
