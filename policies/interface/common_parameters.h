#pragma once

#include "kernels/reduce_heads.h"
#include "kernels/score_pooling.h"
#include "policies/interface/observations.h"
#include "policies/interface/parameters.h"

namespace kvscope::policies {

Parameter window_parameter(int64_t fallback);
Parameter pooling_parameter(std::string fallback);
Parameter kernel_parameter();
Parameter reduce_parameter();
Parameter granularity_parameter();
Parameter key_positions_parameter();
Parameter lambda_parameter(double fallback);
Parameter alpha_parameter(double fallback);
Parameter beta_parameter();
Parameter schedule_parameter();
Parameter rolling_parameter();

kernels::Pooling pooling_of(const ParameterValues& values);
kernels::HeadReduction reduction_of(const ParameterValues& values);
Granularity granularity_of(const ParameterValues& values);
Positions key_positions_of(const ParameterValues& values);

}  // namespace kvscope::policies
