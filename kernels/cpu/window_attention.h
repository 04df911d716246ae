#pragma once

#include "kernels/window_attention.h"

namespace kvscope::kernels::cpu {

/// The CPU twin; arguments are checked by the caller and `scale` is set.
void window_attention(const WindowAttention& problem);

}  // namespace kvscope::kernels::cpu
