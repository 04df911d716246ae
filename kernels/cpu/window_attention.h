#pragma once

#include "kernels/window_attention.h"

namespace kvscope::kernels::cpu {

/// Computes window attention on the CPU. Requires checked arguments and a non-zero `scale`.
void window_attention(const WindowAttention& problem);

}  // namespace kvscope::kernels::cpu
