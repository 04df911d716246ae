#include "policies/methods/score_dispersion.h"

#include <cmath>

namespace kvscope::policies {

namespace {

double sum(std::span<const float> scores) {
    double total = 0.0;
    for (float score : scores) total += score;
    return total;
}

}  // namespace

double standard_deviation(std::span<const float> scores) {
    if (scores.empty()) return 0.0;
    const double n = static_cast<double>(scores.size());
    const double mean = sum(scores) / n;
    double squares = 0.0;
    for (float score : scores) squares += (score - mean) * (score - mean);
    return std::sqrt(squares / n);
}

double entropy(std::span<const float> scores) {
    const double total = sum(scores);
    if (!(total > 0.0)) return 0.0;
    double nats = 0.0;
    for (float score : scores) {
        const double share = score / total;
        if (share > 0.0) nats -= share * std::log(share);
    }
    return nats;
}

}  // namespace kvscope::policies
