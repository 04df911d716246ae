#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "app/gui/drawing/theme.h"
#include "policies/interface/parameters.h"

namespace kvscope::gui {

/// How one parameter is shown.
struct ParameterField {
    const policies::ParameterValues* reference =
        nullptr;                        ///< marked where it differs from these; nullptr: the defaults
    std::string obstacle;               ///< why it cannot be changed now; empty: it can
    int64_t most = 0;                   ///< end of an integer's slider; 0: from its range or default
    std::function<void()> browse = {};  ///< text that names a file: asks for it; empty: it is no file
};

/// A widget for a declared parameter, labelled with its name: a slider or a number for numbers, a list for choices, a
/// box to tick for booleans; its help and range as tooltip, and a way back where it differs from the reference.
/// @returns whether the value changed
bool edit_parameter(const policies::Parameter& parameter, policies::ParameterValues& values, const Theme& theme,
                    const ParameterField& field);

}  // namespace kvscope::gui
