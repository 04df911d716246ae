#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace kvscope::policies {

/// Averages each entry's numbers over the chunks that attended to the entry. The averages are 0 before the first chunk.
class RunningEntryAverages {
 public:
    explicit RunningEntryAverages(int64_t width = 0) : width_(static_cast<size_t>(width)) {}

    void resize(int64_t n) {
        n_chunks_.resize(static_cast<size_t>(n), 0);
        numbers_.resize(n_chunks_.size() * width_, 0.0f);
    }

    /// Adds a chunk's numbers (n, width). Their weight is share_of(k) after k earlier chunks, and 1 if k = 0.
    template <class Share>
    void take(std::span<const float> given, Share share_of) {
        for (size_t entry = 0; entry < n_chunks_.size(); ++entry) {
            const double share = n_chunks_[entry] == 0 ? 1.0 : share_of(n_chunks_[entry]);
            for (size_t i = entry * width_; i < (entry + 1) * width_; ++i)
                numbers_[i] = static_cast<float>(double{numbers_[i]} * (1 - share) + double{given[i]} * share);
            ++n_chunks_[entry];
        }
    }

    /// Replaces each pair by one entry. It has the numbers in `merged` (pairs, width) and the larger chunk count.
    void merge(std::span<const uint32_t> first, std::span<const float> merged) {
        std::vector<float> numbers;
        std::vector<int64_t> n_chunks;
        size_t next = 0;
        for (size_t i = 0; i < n_chunks_.size(); ++i) {
            const bool is_pair = next < first.size() && i == first[next];
            const auto of_entry = is_pair ? merged.subspan(next * width_, width_) : of(i);
            numbers.insert(numbers.end(), of_entry.begin(), of_entry.end());
            n_chunks.push_back(is_pair ? std::max(n_chunks_[i], n_chunks_[i + 1]) : n_chunks_[i]);
            if (is_pair) ++next, ++i;
        }
        numbers_ = std::move(numbers);
        n_chunks_ = std::move(n_chunks);
    }

    [[nodiscard]] std::span<const float> of(size_t entry) const {
        return std::span(numbers_).subspan(entry * width_, width_);
    }

 private:
    size_t width_;
    std::vector<float> numbers_;     // shape (n, width)
    std::vector<int64_t> n_chunks_;  // number of chunks that attended to each entry (n)
};

}  // namespace kvscope::policies
