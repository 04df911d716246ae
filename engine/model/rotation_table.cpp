#include "engine/model/rotation_table.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "engine/device/tensor_functions.h"

namespace kvscope::engine {

RotationTable::RotationTable(std::vector<double> inverse_frequencies, double factor, int64_t limit, at::Device place)
    : inverse_frequencies_(std::move(inverse_frequencies)), factor_(factor), limit_(limit), place_(place) {}

Rotation RotationTable::there(const Rotation& rotation) const {
    return {rotation.cosines.to(place_), rotation.sines.to(place_)};
}

Rotation RotationTable::computed(std::span<const int64_t> positions) const {
    const auto n = static_cast<int64_t>(positions.size());
    const auto half = static_cast<int64_t>(inverse_frequencies_.size());
    Rotation rotation{at::empty({n, half}, at::kFloat), at::empty({n, half}, at::kFloat)};
    kernels::rope_table(positions, inverse_frequencies_, factor_, rotation.cosines.data_ptr<float>(),
                        rotation.sines.data_ptr<float>());
    return rotation;
}

Rotation RotationTable::grow(int64_t n) const {
    const int64_t before = known_.cosines.defined() ? known_.cosines.size(0) : 0;
    if (n > before) {
        const int64_t after = std::min(limit_, std::max<int64_t>({n, 2 * before, 256}));
        std::vector<int64_t> positions(static_cast<size_t>(after - before));
        std::iota(positions.begin(), positions.end(), before);
        Rotation more = computed(positions);
        known_ = before == 0 ? std::move(more)
                             : Rotation{at::cat({known_.cosines, more.cosines}), at::cat({known_.sines, more.sines})};
        known_there_ = there(known_);
    }
    return known_;
}

Rotation RotationTable::rotation(std::span<const int64_t> positions) const {
    int64_t farthest = 0;
    bool one_after_another = true;
    for (size_t i = 0; i < positions.size(); ++i) {
        if (positions[i] <= -limit_ || positions[i] >= limit_) return there(computed(positions));
        farthest = std::max(farthest, std::abs(positions[i]));
        one_after_another = one_after_another && positions[i] == positions[0] + static_cast<int64_t>(i);
    }
    if (positions.empty()) return there(computed(positions));
    const std::lock_guard lock(mutex_);
    const Rotation table = grow(farthest + 1);
    const auto n = static_cast<int64_t>(positions.size());
    if (one_after_another && positions[0] >= 0)
        return {known_there_.cosines.narrow(0, positions[0], n), known_there_.sines.narrow(0, positions[0], n)};
    const int64_t half = table.cosines.size(1);
    Rotation rotation{at::empty({n, half}, at::kFloat), at::empty({n, half}, at::kFloat)};
    for (int64_t i = 0; i < n; ++i) {
        // The table needs no negative positions, because they change only the sign of the sines, even after rounding.
        const int64_t position = positions[static_cast<size_t>(i)];
        const float* cosines = table.cosines.const_data_ptr<float>() + std::abs(position) * half;
        const float* sines = table.sines.const_data_ptr<float>() + std::abs(position) * half;
        std::copy_n(cosines, half, rotation.cosines.data_ptr<float>() + i * half);
        float* to = rotation.sines.data_ptr<float>() + i * half;
        for (int64_t c = 0; c < half; ++c) to[c] = position < 0 ? -sines[c] : sines[c];
    }
    return there(rotation);
}

}  // namespace kvscope::engine
