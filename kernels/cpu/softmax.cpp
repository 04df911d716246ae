#include "kernels/softmax.h"

#include <algorithm>
#include <cmath>

namespace kvscope::kernels {

void softmax(const double* in, int64_t n, double temperature, double* out) {
    if (n <= 0) return;
    const double largest = *std::max_element(in, in + n);
    double sum = 0.0;
    for (int64_t i = 0; i < n; ++i) {
        out[i] = std::exp((in[i] - largest) / temperature);
        sum += out[i];
    }
    for (int64_t i = 0; i < n; ++i) out[i] /= sum;
}

}  // namespace kvscope::kernels
