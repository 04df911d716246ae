#pragma once

#include <span>

#include "analysis/drawing/figure_definition.h"

namespace kvscope::analysis {

/// Completes the definition of a figure that shows the results of all prompts or samples, of one or several traces.
template <Figure (*make)(std::span<const TracePart>), Table (*numbers)(std::span<const TracePart>)>
[[nodiscard]] FigureDefinition of_results(FigureDefinition definition) {
    definition.make = make_from_one_trace<make>;
    definition.numbers = numbers_from_one_trace<numbers>;
    definition.make_joint = make;
    definition.joint_numbers = numbers;
    definition.runs_are_settings = true;
    definition.is_of_prompt = [](const FigureOptions&) { return false; };
    return definition;
}

}  // namespace kvscope::analysis
