#pragma once

#include <cstdint>
#include <vector>

#include "policies/interface/pyramid_budgets.h"
#include "policies/interface/snapkv_family.h"

namespace kvscope::policies {

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
