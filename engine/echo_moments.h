#pragma once

#include <Eigen/Core>
#include <map>
#include <span>
#include <vector>

#include "engine/resumable_state.h"
#include "policies/interface/echo_maps.h"

namespace kvscope::engine {

/// Sums over tokens of the products of any two of a group's first layer's D numbers and a layer's own D: all that the
/// least squared error of a map follows from.
class Moments {
 public:
    using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

    explicit Moments(const policies::EchoLayout& layout);

    /// @param first, own (D, tokens). The same to the last bit whatever the number of threads.
    void add(const std::vector<float>& first, const std::vector<float>& own);

    /// Rows [begin, end) of a map.
    struct Inputs {
        Eigen::Index begin = 0, end = 0;
    };

    /// argmin |X W - Y|^2 + ridge mean(diag X'X) |W|^2: (D + D_local, D - D_local), X the first layer's D numbers and
    /// the own first D_local, Y the others. A ridge that leaves the sums without an inverse is raised tenfold until
    /// they have one.
    /// @param given X has these columns alone, and the map's other rows are 0
    /// @throws RunError for sums that are not finite
    policies::Matrix solved(double ridge, Inputs given) const;

    /// |X W - Y| / |Y|; 0 where Y is.
    double error(const policies::Matrix& map) const;

    std::span<double> sums() { return {sums_.data(), static_cast<size_t>(sums_.size())}; }

 private:
    Eigen::Index outputs() const { return sums_.rows() - inputs_; }

    Eigen::Index inputs_;
    Matrix sums_;
};

/// Of each layer that is rebuilt.
struct LayerMoments {
    Moments keys, values;
};
using EchoMoments = std::map<int, LayerMoments>;

/// The sums of all layers, as a state that is kept.
ResumableState::Parts parts_of(EchoMoments& moments);

}  // namespace kvscope::engine
