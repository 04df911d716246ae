#include <algorithm>
#include <cmath>

#include "kernels/integer_shares.h"
#include "policies/bases/snapkv_family.h"
#include "policies/methods/head_importance.h"

namespace kvscope::policies {

namespace {

/// SnapKV with a budget for each head. All heads get an equal minimum, and importance divides the other entries.
class HeadKv : public SnapKvFamily {
 public:
    explicit HeadKv(const ParameterValues& values)
        : SnapKvFamily(values),
          importance_(values.text("importance")),
          temperature_(values.real("temperature")),
          beta_(values.real("beta")) {}

    void begin(const RunContext& context) override {
        SnapKvFamily::begin(context);
        if (importance_.empty()) {
            throw ImportanceError(
                "headkv needs the heads' importance. Set the parameter `importance` to a JSON file {\"layer-head\": "
                "[score, ...]}, which `kvscope profile-heads MODEL -o FILE` creates.");
        }
        shares_ = kernels::integer_shares(
            quotas(read_head_importance(importance_, context.shape)), context.shape.n_layers * rows() * layer_budget(0),
            std::vector<int64_t>(static_cast<size_t>(context.shape.n_layers * rows()), n_prefix()));
    }

 protected:
    std::vector<int64_t> head_budgets(int layer, const Scores<float>&) const override {
        const auto first = shares_.begin() + layer * rows();
        return {first, first + rows()};
    }

 private:
    /// Returns the quota c - b + S b L R of each row (L, R). S is the row's part of the importance (L, H), which is
    /// raised to the power `temperature`, normalized over the model and summed over query heads.
    std::vector<double> quotas(const std::vector<double>& importance) const {
        const double most = *std::max_element(importance.begin(), importance.end());
        const size_t n = static_cast<size_t>(context().shape.n_layers * rows());
        const size_t group = importance.size() / n;
        std::vector<double> shares(n, 0.0);
        double sum = 0.0;
        for (size_t i = 0; i < importance.size(); ++i) {
            const double share = std::pow(importance[i] / most, temperature_);
            shares[i / group] += share;
            sum += share;
        }
        const double c = static_cast<double>(layer_budget(0));
        const double b = std::floor(c / beta_);
        for (double& share : shares) share = c - b + share / sum * b * static_cast<double>(n);
        return shares;
    }

    std::string importance_;
    double temperature_;
    double beta_;
    std::vector<int64_t> shares_;  ///< prefix entries of each row (L, R)
};

}  // namespace

Definition headkv_definition() {
    return {
        .name = "headkv",
        .title = "HeadKV",
        .paper =
            "Fu et al., Not All Heads Matter: A Head-Level KV Cache Compression Method with Integrated Retrieval and "
            "Reasoning, ICLR 2025, arXiv:2410.19258",
        .summary =
            "Ranks the prefix as SnapKV does. The budget of each head depends on the head's importance for retrieval "
            "and reasoning. A file contains the importance of all heads.",
        .parameters = snapkv_family_parameters({
            mark_as_after_scoring(
                text_parameter("importance", "",
                               "JSON file with the importance of each query head, {\"layer-head\": [score, ...]}, as "
                               "written by `kvscope profile-heads` or published for HeadKV. The file is required.")),
            mark_as_after_scoring(real_parameter("temperature", 1.0, {.low = 0.0},
                                                 "Exponent of each head's importance. Values above 1 increase the "
                                                 "differences between heads, and 0 makes all heads equal.")),
            mark_as_after_scoring(real_parameter(
                "beta", 1.2, {.low = 1.0, .low_open = true},
                "Each head gives up floor(c / beta) of its c prefix entries, which are then distributed by importance. "
                "With values near 1, almost all entries are distributed. With large values, heads keep nearly equal "
                "numbers of entries. Published results use the best of 1.005, 1.01, 1.1, 1.2, 1.5, 2, 5 and 10.")),
        }),
        .create = make_policy<HeadKv>,
        .needs_file = true,
    };
}

}  // namespace kvscope::policies
