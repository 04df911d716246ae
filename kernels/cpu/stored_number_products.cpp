#include "kernels/stored_number_products.h"

#include "kernels/cpu/levels/level_kernels.h"

namespace kvscope::kernels {

void add_product_with_map(const StoredNumbers& numbers, const float* map, int columns, float* out) {
    level_kernels().add_product_with_map(numbers, map, columns, out);
}

void add_weighted(const StoredNumbers& numbers, const float* weights, int64_t weight_stride, int n_queries,
                  float* sums) {
    level_kernels().add_weighted(numbers, weights, weight_stride, n_queries, sums);
}

}  // namespace kvscope::kernels
