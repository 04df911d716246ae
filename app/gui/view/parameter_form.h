#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "app/gui/drawing/theme.h"
#include "policies/api/parameters.h"

namespace kvscope::gui {

struct ParameterField {
    const policies::ParameterValues* reference = nullptr;  ///< other values are marked; nullptr for the defaults
    std::string obstacle;                                  ///< reason why the parameter cannot be changed, or empty
    int64_t most = 0;                   ///< maximum of an integer's slider; 0 for a maximum from the range or default
    std::function<void()> browse = {};  ///< opens a file dialog; empty if the parameter names no file
};

/// Draws a labeled widget for a parameter with a tooltip and a reset button. Returns whether the value changed.
bool edit_parameter(const policies::Parameter& parameter, policies::ParameterValues& values, const Theme& theme,
                    const ParameterField& field);

/// Shows a long text as the tooltip of the last item.
void wrapped_tooltip(const std::string& text);

}  // namespace kvscope::gui
