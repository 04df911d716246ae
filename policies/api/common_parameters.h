#pragma once

#include "kernels/reduce_heads.h"
#include "kernels/score_pooling.h"
#include "policies/api/observations.h"
#include "policies/api/parameters.h"

namespace kvscope::policies {

[[nodiscard]] Parameter window_parameter(int64_t fallback);
[[nodiscard]] Parameter pooling_parameter(std::string fallback);
[[nodiscard]] Parameter kernel_parameter();
[[nodiscard]] Parameter reduce_parameter();
[[nodiscard]] Parameter granularity_parameter();
[[nodiscard]] Parameter key_positions_parameter();
[[nodiscard]] Parameter lambda_parameter(double fallback);
[[nodiscard]] Parameter alpha_parameter(double fallback);
[[nodiscard]] Parameter beta_parameter();
[[nodiscard]] Parameter schedule_parameter();
[[nodiscard]] Parameter rolling_parameter();

[[nodiscard]] kernels::Pooling pooling_of(const ParameterValues& values);
[[nodiscard]] kernels::HeadReduction reduction_of(const ParameterValues& values);
[[nodiscard]] Granularity granularity_of(const ParameterValues& values);
[[nodiscard]] Positions key_positions_of(const ParameterValues& values);

}  // namespace kvscope::policies
