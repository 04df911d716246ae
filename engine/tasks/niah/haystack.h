#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/tasks/api/task.h"
#include "policies/methods/seeded_random.h"

namespace kvscope::engine::niah {

/// Returns the next sentence of a haystack at each call, without end.
using NextSentence = std::function<std::string()>;

/// The sentences around needles: RULER's noise, or those of a user's text. Line breaks become spaces.
class Haystack {
 public:
    /// Reads the parameters `haystack`, a text, a JSON object with a "text" or a folder of texts, and `haystack_order`.
    /// @throws UsageError for a text without sentences
    explicit Haystack(const TaskOptions& options);

    /// @param random draws the order, anew for each pass; noise and `haystack_order` text have one order
    [[nodiscard]] NextSentence sentences(policies::SeededRandom random) const;

 private:
    std::vector<std::string> sentences_;
    bool is_shuffled_ = false;
};

}  // namespace kvscope::engine::niah
