#pragma once

#include <cstdint>
#include <vector>

#include "policies/bases/snapkv_family.h"

namespace kvscope::policies {

/// Returns PyramidKV's number of prefix entries in each layer, from 2c - c / beta down to c / beta with sum L c.
/// Requires c <= n_prefix. With `reference`, rounds the step between layers down, so that the sum exceeds L c.
[[nodiscard]] std::vector<int64_t> pyramid_budgets(int n_layers, int64_t c, int64_t n_prefix, double beta,
                                                   bool reference);

/// Variant of a policy in SnapKV's family with larger budgets in lower layers and the same total.
template <class Family>
class PyramidPolicy : public Family {
 public:
    explicit PyramidPolicy(const ParameterValues& values)
        : Family(values), beta_(values.real("beta")), reference_(values.text("schedule") == "reference") {}

 protected:
    [[nodiscard]] std::vector<int64_t> layer_budgets(int64_t c) const override {
        return pyramid_budgets(this->context().shape.n_layers, c, this->n_prefix(), beta_, reference_);
    }

 private:
    double beta_;
    bool reference_;
};

}  // namespace kvscope::policies
