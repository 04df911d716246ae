#pragma once

#include <cstdint>

#include "kernels/bf16.h"
#include "kernels/cpu/levels/linear_task.h"

namespace kvscope::kernels {

template <class Simd>
struct LinearOutput {
    using vec = typename Simd::vec;
    static constexpr int lanes = Simd::lanes;

    static void write(const LinearTask& task, int64_t row, int64_t output, vec result) {
        const int64_t left = task.n_outputs - output, at = row * task.y_stride + output;
        if (left <= 0) return;
        const vec value = Simd::add(result, bias(task, output, left));
        if (task.y_dtype == DType::f32)
            store(static_cast<float*>(task.y) + at, left, value);
        else
            store(static_cast<bf16*>(task.y) + at, left, value);
    }

 private:
    [[nodiscard]] static vec bias(const LinearTask& task, int64_t output, int64_t left) {
        if (task.bias == nullptr) return Simd::zero();
        if (left >= lanes) return Simd::load(task.bias + output);
        float values[lanes] = {};
        for (int64_t i = 0; i < left; ++i) values[i] = task.bias[output + i];
        return Simd::load(values);
    }

    static void store_all(float* to, vec x) { Simd::store(to, x); }
    static void store_all(bf16* to, vec x) { Simd::store_bf16(to, x); }
    template <class Y>
    static void store(Y* to, int64_t count, vec x) {
        if (count >= lanes) return store_all(to, x);
        Y values[lanes];
        store_all(values, x);
        for (int64_t i = 0; i < count; ++i) to[i] = values[i];
    }
};

}  // namespace kvscope::kernels
