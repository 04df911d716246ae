#include "policies/interface/pyramid_budgets.h"
#include "policies/interface/snapkv_family.h"

namespace kvscope::policies {

namespace {

/// SnapKV with more entries in the lower layers and fewer in the upper ones; the model's total is the same.
class PyramidKv : public SnapKvFamily {
 public:
    explicit PyramidKv(const ParameterValues& values)
        : SnapKvFamily(values), beta_(values.real("beta")), reference_(values.text("schedule") == "reference") {}

 protected:
    std::vector<int64_t> layer_budgets(int64_t c) const override {
        return pyramid_budgets(context().shape.n_layers, c, n_prefix(), beta_, reference_);
    }

 private:
    double beta_;
    bool reference_;
};

}  // namespace

Definition pyramidkv_definition() {
    return {
        .name = "pyramidkv",
        .title = "PyramidKV",
        .paper =
            "Cai et al., PyramidKV: Dynamic KV Cache Compression based on Pyramidal Information Funneling, 2024, "
            "arXiv:2406.02069",
        .summary =
            "SnapKV whose budget shrinks linearly from the first layer to the last, the model's total unchanged.",
        .parameters = snapkv_family_parameters({beta_parameter(), schedule_parameter()}),
        .create = [](const ParameterValues& values) -> std::unique_ptr<Policy> {
            return std::make_unique<PyramidKv>(values);
        },
    };
}

}  // namespace kvscope::policies
