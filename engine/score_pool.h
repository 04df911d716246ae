#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "policies/interface/scores.h"

namespace kvscope::engine {

/// The scores of all runs on a prompt, layer by layer: those that are alike bit by bit (of one policy at several
/// budgets, where its scores do not follow the budget) are held once.
class ScorePool {
 public:
    template <class T>
    using Shared = std::shared_ptr<const std::vector<T>>;

    /// @param scores some
    /// @returns the same values, in the memory of an earlier call that still holds them where there is one
    Shared<float> keep(const policies::Scores<float>& scores) { return keep(scores, f32_); }
    Shared<double> keep(const policies::Scores<double>& scores) { return keep(scores, f64_); }

    /// Of all values that are still held.
    size_t bytes() const;

 private:
    template <class T>
    using Known = std::unordered_multimap<size_t, std::weak_ptr<const std::vector<T>>>;  ///< by their hash

    template <class T>
    static Shared<T> keep(const policies::Scores<T>& scores, Known<T>& known);

    Known<float> f32_;
    Known<double> f64_;
};

}  // namespace kvscope::engine
