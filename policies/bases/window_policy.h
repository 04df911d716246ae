#pragma once

#include <cstdint>
#include <vector>

#include "policies/api/common_parameters.h"
#include "policies/api/definition.h"

namespace kvscope::policies {

/// Base of policies that keep the prompt's last `window` entries and the best-ranked prefix entries.
class WindowPolicy : public Policy {
 public:
    explicit WindowPolicy(const ParameterValues& values);

    [[nodiscard]] Needs needs() const override;
    void begin(const RunContext& context) override;
    [[nodiscard]] Positions positions() const override { return positions_; }

 protected:
    /// Returns each layer's number of prefix entries per row, at most N - w. The sum over layers is L (B - w).
    [[nodiscard]] virtual std::vector<int64_t> layer_budgets(int64_t c) const;

    [[nodiscard]] const RunContext& context() const { return context_; }
    [[nodiscard]] Granularity granularity() const { return granularity_; }
    [[nodiscard]] int window() const { return window_; }
    [[nodiscard]] int rows() const { return rows_; }
    [[nodiscard]] int64_t n_tokens() const { return context_.n_tokens; }
    [[nodiscard]] int64_t n_prefix() const { return n_prefix_; }  ///< N - w, or 0 if the window covers the prompt
    [[nodiscard]] int64_t layer_budget(int layer) const { return layer_budgets_.at(static_cast<size_t>(layer)); }

 private:
    int window_;
    Granularity granularity_;
    Positions positions_;
    RunContext context_;
    int rows_ = 0;
    int64_t n_prefix_ = 0;
    std::vector<int64_t> layer_budgets_;
};

}  // namespace kvscope::policies
