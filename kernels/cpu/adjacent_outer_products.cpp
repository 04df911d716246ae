#include "kernels/adjacent_outer_products.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/cpu/levels/level_kernels.h"
#include "kernels/cpu/targets.h"
#include "kernels/cpu/workspace.h"
#include "kernels/cpu_features.h"
#include "kernels/threads/team.h"

namespace kvscope::kernels {

namespace {

KVSCOPE_INLINE double form_of(const double* matrix, const float* vector, int64_t d, double* product) {
    for (int64_t b = 0; b < d; ++b) product[b] = 0.0;
    int64_t a = 0;
    for (; a + 4 <= d; a += 4) {  // four rows at a time, so that each sum is loaded and stored once for all four
        const double f0 = vector[a], f1 = vector[a + 1], f2 = vector[a + 2], f3 = vector[a + 3];
        const double* row = matrix + a * d;
#pragma omp simd
        for (int64_t b = 0; b < d; ++b)
            product[b] += f0 * row[b] + f1 * row[d + b] + f2 * row[2 * d + b] + f3 * row[3 * d + b];
    }
    for (; a < d; ++a) {
        const double factor = vector[a];
        for (int64_t b = 0; b < d; ++b) product[b] += factor * matrix[a * d + b];
    }
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (int64_t b = 0; b < d; ++b) sum += product[b] * static_cast<double>(vector[b]);
    return sum;
}

using Form = double (*)(const double*, const float*, int64_t, double*);

double form_generic(const double* matrix, const float* vector, int64_t d, double* product) {
    return form_of(matrix, vector, d, product);
}
#ifdef KVSCOPE_AVX2
KVSCOPE_AVX2 double form_avx2(const double* matrix, const float* vector, int64_t d, double* product) {
    return form_of(matrix, vector, d, product);
}
KVSCOPE_AVX512 double form_avx512(const double* matrix, const float* vector, int64_t d, double* product) {
    return form_of(matrix, vector, d, product);
}
#endif

Form form() {
#ifdef KVSCOPE_AVX2
    if (simd_level() >= SimdLevel::avx512) return form_avx512;
    if (simd_level() >= SimdLevel::avx2) return form_avx2;
#endif
    return form_generic;
}

}  // namespace

void add_adjacent_outer_products(const AdjacentOuterProducts& problem) {
    const auto require = [](bool condition, const char* what) {
        if (!condition) throw std::invalid_argument(std::string("add_adjacent_outer_products: ") + what);
    };
    require(problem.dtype == DType::f32 || problem.dtype == DType::bf16, "expected vectors in f32 or bf16");
    require(problem.n_heads >= 0 && problem.n >= 0 && problem.d > 0, "sizes must not be negative");
    if (problem.n == 0 || problem.n_heads == 0) return;
    require(problem.vectors && problem.sums, "vectors or sums are null");
    const LevelKernels& kernels = level_kernels();
    const int n_threads = static_cast<int>(std::min<int64_t>(threads(), problem.n_heads));
    const size_t per_thread = (kernels.neighbour_scratch_bytes(problem.d) + 4095) / 4096 * 4096;
    thread_local Workspace workspace;
    char* scratch = static_cast<char*>(workspace.reserve(per_thread * static_cast<size_t>(n_threads)));
    over_parts(n_threads, problem.n_heads, 1, [&](int64_t begin, int64_t end, int member) {
        for (int64_t head = begin; head < end; ++head)
            kernels.add_adjacent_outer_products(problem, head, scratch + per_thread * static_cast<size_t>(member));
    });
}

void quadratic_forms(const double* matrix, const float* vectors, int64_t n, int64_t d, double* out) {
    const Form form_of_level = form();
    std::vector<double> product(static_cast<size_t>(d));
    for (int64_t i = 0; i < n; ++i) out[i] = form_of_level(matrix, vectors + i * d, d, product.data());
}

}  // namespace kvscope::kernels
