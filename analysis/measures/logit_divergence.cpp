#include "analysis/measures/logit_divergence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <vector>

namespace kvscope::analysis {
namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

double percentile(const std::vector<double>& ascending, double share) {
    const double rank = share * static_cast<double>(ascending.size() - 1);
    const auto below = static_cast<size_t>(rank);
    const size_t above = std::min(below + 1, ascending.size() - 1);
    return std::lerp(ascending[below], ascending[above], rank - static_cast<double>(below));
}

}  // namespace

LogitDivergence logit_divergence(std::span<const float> step_kl, std::span<const uint8_t> step_agreement) {
    if (step_kl.size() != step_agreement.size()) {
        throw std::invalid_argument(fmt::format("logit divergence: step_kl has {} steps, step_agreement has {}",
                                                step_kl.size(), step_agreement.size()));
    }
    LogitDivergence d;
    d.n_steps = step_kl.size();
    if (d.n_steps == 0) {
        d.kl_mean = d.kl_stderr = d.kl_median = d.kl_p95 = d.kl_max = d.agreement = not_a_number;
        return d;
    }
    std::vector<double> kl(step_kl.begin(), step_kl.end());
    const auto n = static_cast<double>(kl.size());
    const bool known = std::none_of(kl.begin(), kl.end(), [](double value) { return std::isnan(value); });
    d.kl_mean = std::accumulate(kl.begin(), kl.end(), 0.0) / n;
    double squares = 0;
    for (const double value : kl) squares += (value - d.kl_mean) * (value - d.kl_mean);
    d.kl_stderr = kl.size() < 2 ? not_a_number : std::sqrt(squares / (n - 1) / n);
    if (known) {
        std::sort(kl.begin(), kl.end());
        d.kl_median = percentile(kl, 0.5);
        d.kl_p95 = percentile(kl, 0.95);
        d.kl_max = kl.back();
    } else {
        d.kl_median = d.kl_p95 = d.kl_max = not_a_number;
    }
    const auto n_agree = std::count_if(step_agreement.begin(), step_agreement.end(), [](uint8_t a) { return a != 0; });
    d.agreement = static_cast<double>(n_agree) / n;
    const auto first = std::find(step_agreement.begin(), step_agreement.end(), uint8_t{0});
    if (first != step_agreement.end()) d.first_disagreement = static_cast<size_t>(first - step_agreement.begin());
    return d;
}

}  // namespace kvscope::analysis
