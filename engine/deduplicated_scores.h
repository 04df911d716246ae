#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "policies/api/scores.h"
#include "trace/records/records.h"

namespace kvscope::engine {

/// Scores of all runs on a prompt. Equal scores are stored once, for example if two runs differ only in the budget.
class DeduplicatedScores {
 public:
    template <class T>
    using Shared = std::shared_ptr<const std::vector<T>>;

    /// Returns the scores. Shares the memory of equal scores that are still in use.
    [[nodiscard]] Shared<float> keep(const policies::Scores<float>& scores) { return keep(scores, f32_); }
    [[nodiscard]] Shared<double> keep(const policies::Scores<double>& scores) { return keep(scores, f64_); }

 private:
    template <class T>
    using Known = std::unordered_multimap<size_t, std::weak_ptr<const std::vector<T>>>;  ///< scores by hash

    template <class T>
    [[nodiscard]] static Shared<T> keep(const policies::Scores<T>& scores, Known<T>& known);

    Known<float> f32_;
    Known<double> f64_;
};

/// Reusable memory for the scores of one record at a time. Allocating memory takes longer than copying the scores.
class ScoreBuffer {
 public:
    [[nodiscard]] std::vector<float> join(std::span<const DeduplicatedScores::Shared<float>> layers) {
        return join(layers, f32_);
    }
    [[nodiscard]] std::vector<double> join(std::span<const DeduplicatedScores::Shared<double>> layers) {
        return join(layers, f64_);
    }
    /// Takes back the memory that join() lent to the record. Call it after the last use of the record.
    void take_back(trace::RunRecord& record);

 private:
    template <class T>
    [[nodiscard]] static std::vector<T> join(std::span<const DeduplicatedScores::Shared<T>> layers,
                                             std::vector<T>& room);

    std::vector<float> f32_;
    std::vector<double> f64_;
};

}  // namespace kvscope::engine
