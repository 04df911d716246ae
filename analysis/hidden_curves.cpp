#include "analysis/hidden_curves.h"

#include <cmath>

namespace kvscope::analysis {

bool is_hidden_by(const Line& below, const Line& above, const Axis& y) {
    constexpr double line_width = 0.003;
    const bool is_log = y.scale == Scale::logarithmic;
    const auto place = [is_log](double value) { return is_log ? std::log(value) : value; };
    const double width = line_width * std::abs(place(y.max) - place(y.min));
    if (below.x != above.x || below.y.size() != above.y.size()) return false;
    for (size_t i = 0; i < below.y.size(); ++i) {
        if (std::isnan(below.y[i])) continue;
        if (!(std::abs(place(below.y[i]) - place(above.y[i])) <= width) && below.y[i] != above.y[i]) return false;
    }
    return true;
}

}  // namespace kvscope::analysis
