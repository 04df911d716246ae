#pragma once

#include <Eigen/Core>
#include <map>
#include <span>
#include <vector>

#include "engine/echo/resumable_state.h"
#include "policies/methods/echo_maps.h"

namespace kvscope::engine {

/// Gram matrix of the D numbers of a group's first layer and the D numbers of a layer, summed over tokens.
class Moments {
 public:
    using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

    explicit Moments(const policies::EchoLayout& layout);

    void add(const std::vector<float>& first, const std::vector<float>& own);

    struct Inputs {
        Eigen::Index begin = 0, end = 0;
    };

    /// Returns the map W that minimizes |X W - Y|^2 + ridge mean(diag X'X) |W|^2. X holds all D numbers of the first
    /// layer and the first D_local numbers of the layer. Y holds the layer's other numbers. May raise the ridge.
    /// @throws RunError if the sums are not finite
    [[nodiscard]] policies::Matrix solved(double ridge, Inputs given) const;

    /// Returns |X W - Y| / |Y|; 0 if Y is 0.
    [[nodiscard]] double error(const policies::Matrix& map) const;

    [[nodiscard]] std::span<double> sums() { return {sums_.data(), static_cast<size_t>(sums_.size())}; }

 private:
    [[nodiscard]] Eigen::Index outputs() const { return sums_.rows() - inputs_; }

    Eigen::Index inputs_;
    Matrix sums_;
};

struct LayerMoments {
    Moments keys, values;
};
using EchoMoments = std::map<int, LayerMoments>;

[[nodiscard]] ResumableState::Parts moments_as_bytes(EchoMoments& moments);

}  // namespace kvscope::engine
