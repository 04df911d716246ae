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

struct QuestionOptions {
    int64_t n_new = 64;  ///< tokens to generate at most
    SamplingOptions sampling;
    bool ignore_eos = false;  ///< go on after an end-of-text token
};

struct Reply {
    std::string read;               ///< the text that was read after the cache's, template applied
    std::vector<int32_t> read_ids;  ///< its tokens
    std::vector<int32_t> ids;       ///< the answer, its end-of-text token included
    std::string text;
    std::string remark;    ///< how its tokens differ from those of the whole text; empty where they do not
    std::string error;     ///< why there is no whole answer; empty where there is
    bool refused = false;  ///< it could not be asked at all
};

/// A finished run that can be asked more: its compressed cache as it stood at the end of what the policy saw. Every
/// question is read into a copy of that cache, uncompressed, so that no answer changes the next one. One question at a
/// time. The full run's cache shares the keys and values of the live prefill, where that was kept, too.
class Conversation {
 public:
    /// @param policy   the run's, at the end of the prompt
    /// @param position of the next token
    /// @param answer   the run's own, as text
    Conversation(std::string label, RunCache cache, std::unique_ptr<policies::Policy> policy, int64_t position,
                 std::shared_ptr<const Prompt> prompt, std::string answer);

    const std::string& label() const { return label_; }
    /// Whether the cache is this model's, which it reads: another of the same weights does not do.
    bool is_of(const Model& model) const { return &cache_.model() == &model.transformer(); }
    /// What stands as the run's own answer in the turns before a further question.
    void set_answer(std::string answer) { answer_ = std::move(answer); }

    /// As `ask_all` of this one alone.
    /// @throws UsageError, where it failed RunError, with what would be its `Reply::error`; Cancelled.
    Reply ask(const Model& model, std::string_view question, const QuestionOptions& options, Progress& progress,
              const std::function<void(int32_t)>& on_token = nullptr);

 private:
    friend std::vector<Reply> ask_all(const Model&, std::span<Conversation* const>, std::string_view,
                                      const QuestionOptions&, Progress&, const std::function<void(size_t, int32_t)>&);

    struct Text {
        std::string whole;  ///< what a model without this cache would read
        size_t begin = 0;   ///< where the part begins that the cache does not hold, if context and question are apart
    };

    /// Where policies did not see the prompt's question: the prompt with the new one in its place. Where they saw all
    /// of the prompt: the prompt, the run's own answer and a further user turn, as the chat template writes them;
    /// without a template the prompt, an empty line and the question.
    /// @throws UsageError for an empty question, a template that writes earlier turns otherwise, and a trace's prompt
    /// of which the context is not known.
    Text text_of(const Model& model, std::string_view question) const;

    /// Renders and encodes a question into `reply`: the tokens of the whole text that follow the cache's, where it
    /// begins with these; else those of the rest of the text alone, with a remark. @returns their number
    /// @throws UsageError where it cannot be asked: as text_of(), or question and answer do not fit in the context
    int64_t read_question(const Model& model, std::string_view question, int64_t n_new, Reply& reply) const;

    std::string label_;
    RunCache cache_;
    std::unique_ptr<policies::Policy> policy_;
    int64_t position_;
    std::shared_ptr<const Prompt> prompt_;
    std::string answer_;
};

/// The same question to many runs of one model, read and answered as one batch. A run whose `text_of` throws, or whose
/// question and answer do not fit in the model's context, has its error in its reply, and the others are asked. So has
/// one that fails on the way, beside what it answered until then.
/// @param conversations each once, but for the full cache's: their policies act while they answer
/// @param on_token called with each token of an answer and the number of its conversation
/// @throws Cancelled; UsageError where `n_new` is below 1
std::vector<Reply> ask_all(const Model& model, std::span<Conversation* const> conversations, std::string_view question,
                           const QuestionOptions& options, Progress& progress,
                           const std::function<void(size_t, int32_t)>& on_token = nullptr);

}  // namespace kvscope::engine
