#include "app/cli/engine/measure_query_similarity.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "engine/decode/pseudo_query_similarity.h"

namespace kvscope::cli {
namespace {

using engine::PseudoTokens;
using Content = engine::PseudoTokens::Content;

constexpr std::string_view phrase = "Sorry, I don't know. ";

struct Condition {
    PseudoTokens tokens;
    int n_tails = 1;
    bool of_curve = false;
};

std::vector<Condition> conditions_of(int64_t n_prompt, const QuerySimilarityOptions& options) {
    std::vector<Condition> conditions = {
        {{Content::answer, n_prompt}}, {{Content::phrase, n_prompt}}, {{Content::answer, 0}}, {{Content::phrase, 0}}};
    if (options.n_trials > 0) {
        const int64_t near = std::min<int64_t>(n_prompt, 100);
        conditions.push_back({{Content::vocabulary, n_prompt}, options.n_trials});
        for (const Content content : {Content::answer, Content::vocabulary}) {
            for (const int64_t range : {n_prompt, near})
                conditions.push_back({{.content = content, .drawn_below = range}, options.n_trials});
        }
    }
    for (int64_t i = 0; i < options.n_offsets; ++i) {
        const int64_t steps = std::max<int64_t>(options.n_offsets - 1, 1);
        conditions.push_back({{Content::answer, options.n_offsets == 1 ? n_prompt : n_prompt * i / steps}, 1, true});
    }
    return conditions;
}

std::string text_of(Content content) {
    switch (content) {
        case Content::answer:
            return "the answer";
        case Content::phrase:
            return "phrase";
        case Content::vocabulary:
            return "vocabulary";
    }
    return "";
}

}  // namespace

std::vector<analysis::PromptQueries> measure_query_similarity(const engine::Model& model,
                                                              std::span<const engine::Prompt> prompts,
                                                              const QuerySimilarityOptions& options,
                                                              engine::Progress& progress) {
    std::vector<analysis::PromptQueries> all;
    const auto phrase_ids = model.tokenizer().encode(phrase, false, false, progress.stop_token());
    for (const engine::Prompt& prompt : prompts) {
        engine::PseudoQuerySimilarity alignment(model.transformer(), prompt.ids, model.end_ids(), options.n_answer,
                                                progress);
        progress.message(fmt::format("{}: {} prompt tokens, answer of {} tokens: {}", prompt.name, alignment.n_prompt(),
                                     alignment.answer().size(),
                                     model.answer_text(alignment.answer(), progress.stop_token())));
        const engine::PseudoSource source{alignment.answer(), phrase_ids, model.config().vocab_size, options.seed};
        const auto conditions = conditions_of(alignment.n_prompt(), options);
        std::vector<engine::Tail> tails;
        for (const Condition& condition : conditions) {
            auto of_condition = engine::draw_pseudo_tokens(condition.tokens, source, condition.n_tails);
            std::move(of_condition.begin(), of_condition.end(), std::back_inserter(tails));
        }
        const auto similarities = alignment.similarity(tails, progress);
        auto& of_prompt = all.emplace_back();
        of_prompt.prompt = prompt.name;
        of_prompt.n_tokens = alignment.n_prompt();
        of_prompt.n_answer = static_cast<int64_t>(alignment.answer().size());
        auto next = similarities.begin();
        for (const auto& [tokens, n_tails, of_curve] : conditions) {
            analysis::PseudoQueries one;
            one.same_content = tokens.content == Content::answer;
            one.content = text_of(tokens.content);
            one.start = tokens.start;
            one.drawn_below = tokens.drawn_below;
            for (int i = 0; i < n_tails; ++i, ++next) {
                one.after_rope.push_back(next->after_rope);
                one.before_rope.push_back(next->before_rope);
            }
            (of_curve ? of_prompt.curve : of_prompt.conditions).push_back(std::move(one));
        }
    }
    return all;
}

}  // namespace kvscope::cli
