#pragma once

#include <string>

#include "analysis/figure_definition.h"

namespace kvscope::gui {

/// A choice among the sources that a figure's definition lists, in line with what stands before. Its label is
/// "##source <view>". @returns whether it changed
bool choose_source(const char* view, const analysis::FigureDefinition& definition, std::string& source);

/// "kv-heads" as a person reads it: "KV heads".
std::string source_title(const std::string& source);

}  // namespace kvscope::gui
