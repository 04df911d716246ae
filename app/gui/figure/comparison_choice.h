#pragma once

#include "app/gui/session/answer_reference.h"
#include "app/gui/session/comparison.h"
#include "app/gui/view/view.h"

namespace kvscope::gui {

/// A choice among what can be compared, labelled "##compare <view>"; nothing where there is nothing to compare.
/// @returns whether it is there
bool choose_comparison(const char* view, const Context& context, AutomaticComparison automatic, Comparison& comparison);

/// A choice labelled "##answers against". What was chosen is resolved.
void choose_reference(const Session& session, AnswerReference& reference);

}  // namespace kvscope::gui
