#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "policies/interface/scores.h"
#include "trace/records.h"

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

/// Memory for the scores of one record after the other: a new one for each costs more than what is copied into it.
class ScoreRoom {
 public:
    /// The values of the layers, one layer behind the other.
    std::vector<float> join(std::span<const ScorePool::Shared<float>> layers) { return join(layers, f32_); }
    std::vector<double> join(std::span<const ScorePool::Shared<double>> layers) { return join(layers, f64_); }
    /// Takes back what `join` gave; the record is not needed any more.
    void take_back(trace::RunRecord& record);

 private:
    template <class T>
    static std::vector<T> join(std::span<const ScorePool::Shared<T>> layers, std::vector<T>& room);

    std::vector<float> f32_;
    std::vector<double> f64_;
};

}  // namespace kvscope::engine
