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
#include "engine/inference/prompt.h"
#include "engine/inference/sampler.h"
#include "engine/model/model.h"
#include "policies/interface/policy.h"

namespace kvscope::engine {

/// Options for answering a further question.
struct QuestionOptions {
    int64_t n_new = 64;  ///< greatest number of tokens to generate
    SamplingOptions sampling;
    bool ignore_eos = false;  ///< continue after an end-of-text token
};

/// Answer of a run to a further question.
struct Reply {
    std::string read;               ///< text that was read after the cached text, with the chat template applied
    std::vector<int32_t> read_ids;  ///< tokens of `read`
    std::vector<int32_t> ids;       ///< answer with its end-of-text token
    std::string text;
    std::string remark;    ///< how the tokens differ from those of the whole text; empty if they agree
    std::string error;     ///< why the answer is missing or incomplete; empty if it is complete
    bool refused = false;  ///< whether the question could not be asked at all
};

/// A finished run that can answer further questions. Each question is read into a copy of the compressed cache, so
/// answers do not affect one another. Use from one thread at a time.
class Conversation {
 public:
    /// @param policy the run's policy, in its state after the prompt
    /// @param answer text of the run's own answer
    Conversation(std::string label, RunCache cache, std::unique_ptr<policies::Policy> policy, int64_t position,
                 std::shared_ptr<const Prompt> prompt, std::string answer);

    const std::string& label() const { return label_; }
    /// Whether the cache belongs to this very model. Another copy of the same weights does not match.
    bool is_of(const Model& model) const { return &cache_.model() == &model.transformer(); }
    /// Sets the text that stands for the run's own answer in the turns before a further question.
    void set_answer(std::string answer) { answer_ = std::move(answer); }

    /// Asks this run alone, as `ask_all`. @throws UsageError if the question is refused; RunError if answering failed
    Reply ask(const Model& model, std::string_view question, const QuestionOptions& options, Progress& progress,
              const std::function<void(int32_t)>& on_token = nullptr);

 private:
    friend std::vector<Reply> ask_all(const Model&, std::span<Conversation* const>, std::string_view,
                                      const QuestionOptions&, Progress&, const std::function<void(size_t, int32_t)>&);

    struct Text {
        std::string whole;  ///< text that a model without this cache would read
        size_t begin = 0;   ///< where the text after the cache begins, if context and question are tokenized separately
    };

    /// Returns the text of a conversation with the new question. It replaces the prompt's question if policies did not
    /// see that. Otherwise it follows the prompt and the run's answer as a further user turn.
    /// @throws UsageError for an empty question or a template or trace that does not allow it
    Text text_of(const Model& model, std::string_view question) const;

    /// Encodes a question into `reply` and returns the number of its tokens. Adds a remark if the tokens of the whole
    /// text do not begin with the cached ones.
    /// @throws UsageError as text_of(), or if question and answer exceed the model's context
    int64_t read_question(const Model& model, std::string_view question, int64_t n_new, Reply& reply) const;

    std::string label_;
    RunCache cache_;
    std::unique_ptr<policies::Policy> policy_;
    int64_t position_;
    std::shared_ptr<const Prompt> prompt_;
    std::string answer_;
};

/// Asks many runs of one model the same question, as one batch. If a run fails, its reply holds the error and the
/// tokens until then.
/// @param conversations no run twice, except full: policies change while they answer
/// @throws UsageError if `n_new` is below 1
std::vector<Reply> ask_all(const Model& model, std::span<Conversation* const> conversations, std::string_view question,
                           const QuestionOptions& options, Progress& progress,
                           const std::function<void(size_t, int32_t)>& on_token = nullptr);

}  // namespace kvscope::engine
