#include "kernels/cpu/levels/level_body.h"
#include "kernels/cpu/levels/simd_generic.h"

namespace kvscope::kernels::generic {

constinit const LevelKernels all_kernels = kernels_of_level<SimdGeneric>();

}  // namespace kvscope::kernels::generic
