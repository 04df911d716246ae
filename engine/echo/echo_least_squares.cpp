#include "engine/echo/echo_least_squares.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>

#include "engine/common/engine_error.h"
#include "kernels/linear.h"

namespace kvscope::engine {
namespace {

using RowsF = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

}  // namespace

Moments::Moments(const policies::EchoLayout& layout)
    : inputs_(layout.width() + layout.local), sums_(Matrix::Zero(2 * layout.width(), 2 * layout.width())) {}

void Moments::add(const std::vector<float>& first, const std::vector<float>& own) {
    std::vector<float> both = first;
    both.insert(both.end(), own.begin(), own.end());
    const int64_t n = sums_.rows(), tokens = static_cast<int64_t>(both.size()) / n;
    std::vector<float> products(static_cast<size_t>(n * n));
    kernels::linear({.dtype = kernels::DType::f32,
                     .n_rows = n,
                     .in = tokens,
                     .out = n,
                     .x = both.data(),
                     .weight = both.data(),
                     .y = products.data()});
    sums_ += Eigen::Map<const RowsF>(products.data(), n, n).cast<double>();
}

policies::Matrix Moments::solved(double ridge, Inputs given) const {
    const Eigen::Index n = given.end - given.begin;
    const Matrix squares = sums_.block(given.begin, given.begin, n, n);
    const double mean = squares.trace() / static_cast<double>(n);
    // With nearly dependent inputs, rounding errors can outweigh a small ridge.
    for (double share = std::max(ridge, 1e-7); share < 1e3; share *= 10) {
        Matrix raised = squares;
        raised.diagonal().array() += mean > 0 ? share * mean : 1.0;
        const Eigen::LLT<Matrix> factors(raised);
        if (factors.info() != Eigen::Success) continue;
        Matrix map = Matrix::Zero(inputs_, outputs());
        map.middleRows(given.begin, n) = factors.solve(sums_.block(given.begin, inputs_, n, outputs()));
        policies::Matrix matrix{static_cast<int>(inputs_), static_cast<int>(outputs()), {}};
        matrix.numbers.resize(static_cast<size_t>(map.size()));
        std::transform(map.data(), map.data() + map.size(), matrix.numbers.begin(),
                       [](double value) { return static_cast<float>(value); });
        if (map.allFinite() && !(error(matrix) > 1.0)) return matrix;
    }
    throw RunError(
        "no map can be computed from the text's keys and values: they are not finite or do not determine a map");
}

double Moments::error(const policies::Matrix& map) const {
    const Matrix w = Eigen::Map<const RowsF>(map.numbers.data(), map.n_rows, map.n_columns).cast<double>();
    const double whole = sums_.bottomRightCorner(outputs(), outputs()).trace();
    const Matrix squares = sums_.topLeftCorner(inputs_, inputs_), products = sums_.topRightCorner(inputs_, outputs());
    const double missed = whole - 2.0 * w.cwiseProduct(products).sum() + w.cwiseProduct(squares * w).sum();
    return whole > 0 ? std::sqrt(std::max(missed, 0.0) / whole) : 0.0;
}

ResumableState::Parts moments_as_bytes(EchoMoments& moments) {
    ResumableState::Parts parts;
    for (auto& [layer, of_layer] : moments) {
        parts.push_back(std::as_writable_bytes(of_layer.keys.sums()));
        parts.push_back(std::as_writable_bytes(of_layer.values.sums()));
    }
    return parts;
}

}  // namespace kvscope::engine
