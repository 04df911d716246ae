#include "kernels/embed.h"

#include <vector>

#include "kernels/bf16.h"

namespace kvscope::kernels {

void embed(const Embed& problem) {
    const size_t width = row_bytes(problem.format, problem.columns);
    const auto n = static_cast<size_t>(problem.columns);
    std::vector<bf16> rounded(problem.dtype == DType::bf16 ? n : 0);
    float* out = problem.out;
    for (const int32_t id : problem.ids) {
        ExpandWeights row{.format = problem.format,
                          .n_rows = 1,
                          .in = problem.columns,
                          .rows = static_cast<const char*>(problem.weight) + static_cast<size_t>(id) * width,
                          .dtype = problem.dtype,
                          .out = out};
        if (!rounded.empty()) row.out = rounded.data();
        expand_weights(row);
        for (size_t c = 0; c < rounded.size(); ++c) out[c] = to_float(rounded[c]);
        out += n;
    }
}

}  // namespace kvscope::kernels
