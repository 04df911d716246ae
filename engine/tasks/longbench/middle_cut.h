#pragma once

#include <cstdint>
#include <string>

#include "engine/tasks/api/task.h"

namespace kvscope::engine::longbench {

struct TwoPartPrompt {
    std::string context;   ///< text before the question
    std::string question;  ///< may be empty only before the cut
};

/// How the two halves of a cut prompt become text.
enum class Halves {
    decoded_apart,                   ///< LongBench, LooGLE: both halves have max_length / 2 tokens, rounded down
    decoded_together,                ///< LongBench-v2: the second half has a token more if max_length is odd
    of_equal_size_decoded_together,  ///< InfiniteBench: both halves have max_length / 2 tokens, rounded down
};

/// Removes the middle of a prompt with more than `max_length` tokens (pred.py). If the question does not fit into the
/// second half, the whole second half is the question. The text of the result may have other tokens than the halves.
[[nodiscard]] TwoPartPrompt cut_in_the_middle(const SampleRequest& request, TwoPartPrompt prompt, int64_t max_length,
                                              Halves halves);

[[nodiscard]] policies::Parameter max_length_parameter();

/// Returns the value of max_length_parameter(), by default the context length minus the answer and space for the chat
/// template. @throws UsageError if the model's context has no space
[[nodiscard]] int64_t max_length_of(const SampleRequest& request, int64_t n_new);

/// Returns the requested number of answer tokens: `of_set`, unless the user set another number than the task's.
[[nodiscard]] int64_t n_new_of(const SampleRequest& request, int64_t of_set);

}  // namespace kvscope::engine::longbench
