#include "analysis/figure_definition.h"

#include <fmt/format.h>

#include <algorithm>

#include "policies/interface/names.h"

namespace kvscope::analysis {

const FigureDefinition& figure_definition(std::string_view name) {
    std::string wanted(name);
    std::replace(wanted.begin(), wanted.end(), '_', '-');
    std::vector<std::string> known;
    for (const FigureDefinition& definition : figure_definitions()) {
        if (definition.name == wanted) return definition;
        known.push_back(definition.name);
    }
    throw FigureError(fmt::format("there is no figure '{}'.{} There are {}", name, policies::did_you_mean(name, known),
                                  policies::joined(known)));
}

}  // namespace kvscope::analysis
