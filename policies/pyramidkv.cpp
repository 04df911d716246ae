#include <cmath>

#include "kernels/integer_shares.h"
#include "policies/bases/pyramid_policy.h"

namespace kvscope::policies {

std::vector<int64_t> pyramid_budgets(int n_layers, int64_t c, int64_t n_prefix, double beta, bool reference) {
    if (n_layers == 1) return {c};
    int64_t least = static_cast<int64_t>(std::floor(static_cast<double>(c) / beta));
    int64_t most = 2 * c - least;
    if (most >= n_prefix) {
        most = n_prefix;
        least = 2 * c - most;
    }
    if (reference) {
        std::vector<int64_t> budgets;
        for (int layer = 0; layer < n_layers; ++layer)
            budgets.push_back(most - layer * ((most - least) / (n_layers - 1)));
        return budgets;
    }
    std::vector<double> line;
    for (int layer = 0; layer < n_layers; ++layer) {
        line.push_back(static_cast<double>(most) - static_cast<double>(layer * (most - least)) / (n_layers - 1));
    }
    return kernels::integer_shares(line, n_layers * c);
}

Definition pyramidkv_definition() {
    return {
        .name = "pyramidkv",
        .title = "PyramidKV",
        .paper =
            "Cai et al., PyramidKV: Dynamic KV Cache Compression based on Pyramidal Information Funneling, 2024, "
            "arXiv:2406.02069",
        .summary =
            "Ranks the prefix as SnapKV does. The layers' budgets decrease linearly from the first to the last layer. "
            "The total is the same as with equal budgets.",
        .parameters = snapkv_family_parameters({beta_parameter(), schedule_parameter()}),
        .create = make_policy<PyramidPolicy<SnapKvFamily>>,
    };
}

}  // namespace kvscope::policies
