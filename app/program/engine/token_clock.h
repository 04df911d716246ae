#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "engine/prefill/prompt.h"

namespace kvscope::program {

/// Estimates the remaining time of a list of prompts from the tokens and the seconds of the finished prompts.
class TokenClock {
 public:
    explicit TokenClock(std::span<const engine::Prompt> prompts) {
        for (const auto& prompt : prompts) tokens_.push_back(static_cast<double>(prompt.ids.size()));
    }

    void finish(std::size_t prompt, double seconds) {
        tokens_done_ += tokens_[prompt];
        seconds_done_ += seconds;
    }

    /// Returns the remaining seconds of the prompts from `begin` on; negative if no prompt is finished.
    /// @param is_done whether a prompt needs no time, because the trace already contains its results
    [[nodiscard]] double seconds_left(std::size_t begin, const std::function<bool(std::size_t)>& is_done) const {
        if (tokens_done_ == 0) return -1;
        double tokens_left = 0;
        for (std::size_t i = begin; i < tokens_.size(); ++i)
            if (!is_done(i)) tokens_left += tokens_[i];
        return seconds_done_ / tokens_done_ * tokens_left;
    }

 private:
    std::vector<double> tokens_;
    double tokens_done_ = 0, seconds_done_ = 0;
};

}  // namespace kvscope::program
