#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/cache/run_cache.h"
#include "engine/common/progress.h"
#include "engine/decode/sampler.h"
#include "engine/model/model.h"
#include "engine/prefill/prompt.h"
#include "policies/api/definition.h"

namespace kvscope::engine {

struct QuestionOptions {
    int64_t n_new = 64;  ///< greatest number of tokens to generate
    SamplingOptions sampling;
    bool ignore_eos = false;  ///< continue after an end-of-text token
};

struct Reply {
    std::string read;               ///< text read after the cached tokens, with the chat template applied
    std::vector<int32_t> read_ids;  ///< tokens of `read`
    std::vector<int32_t> ids;       ///< answer with its end-of-text token
    std::string text;
    std::string remark;    ///< how the tokens differ from the tokens of the whole text; empty if equal
    std::string error;     ///< why the answer is missing or incomplete; empty if it is complete
    bool refused = false;  ///< whether the question could not be asked
};

/// A finished run that can answer further questions, each with a copy of the compressed cache, so that answers do not
/// affect one another. Use from one thread at a time.
class Conversation {
 public:
    /// @param policy the run's policy in its state after the prompt
    Conversation(std::string label, RunCache cache, policies::CreatedPolicy policy, int64_t position,
                 std::shared_ptr<const Prompt> prompt, std::string answer);

    [[nodiscard]] const std::string& label() const { return label_; }
    /// Whether this Model object made the cache; another Model with the same weights does not match.
    [[nodiscard]] bool is_of(const Model& model) const { return &cache_.model() == &model.transformer(); }
    /// Sets the run's answer that precedes further questions in the conversation.
    void set_answer(std::string answer) { answer_ = std::move(answer); }

 private:
    friend std::vector<Reply> ask_all_runs(const Model&, std::span<Conversation* const>, std::string_view,
                                           const QuestionOptions&, Progress&,
                                           const std::function<void(size_t, int32_t)>&);

    struct Text {
        std::string whole;  ///< text with the new question, as it would be read without a cache
        size_t begin = 0;   ///< where the text after the cached tokens begins
    };

    /// Returns the text with the new question: in place of the prompt's question if policies did not see that question,
    /// otherwise as a user turn after the run's answer. @throws UsageError if the question cannot be inserted
    [[nodiscard]] Text text_of(const Model& model, std::string_view question, const std::stop_token& stop) const;

    /// Encodes the question into `reply` and returns its number of tokens.
    /// @throws UsageError as text_of(), or if question and answer exceed the model's context
    [[nodiscard]] int64_t read_question(const Model& model, std::string_view question, int64_t n_new, Reply& reply,
                                        const std::stop_token& stop) const;

    std::string label_;
    RunCache cache_;
    policies::CreatedPolicy policy_;
    int64_t position_;
    std::shared_ptr<const Prompt> prompt_;
    std::string answer_;
};

/// Asks many runs of one model the same question as one batch. Replies of failed runs contain the error and the tokens
/// generated before the error. @throws UsageError if `n_new` is below 1
/// @param conversations distinct runs, because an answer changes the run's policy; only the full run may repeat
[[nodiscard]] std::vector<Reply> ask_all_runs(const Model& model, std::span<Conversation* const> conversations,
                                              std::string_view question, const QuestionOptions& options,
                                              Progress& progress,
                                              const std::function<void(size_t, int32_t)>& on_token = nullptr);

}  // namespace kvscope::engine
