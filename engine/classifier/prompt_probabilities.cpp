#include "engine/classifier/prompt_probabilities.h"

#include <limits>
#include <string_view>

#include "engine/classifier/context_span.h"

namespace kvscope::engine {

std::vector<float> prompt_probabilities(const Model& model, const Prompt& prompt, const TokenClassifier& classifier,
                                        const policies::TokenClassifierSettings& how, Progress& progress) {
    const ContextSpan span = find_context_in_prompt(model, prompt, progress.stop_token());
    const auto context = std::string_view(span.text).substr(span.begin, span.end - span.begin);
    const std::vector<float> of_bytes = classifier.byte_probabilities(context, how, progress);
    std::vector<float> probabilities(static_cast<size_t>(prompt.n_visible()), std::numeric_limits<float>::quiet_NaN());
    for (size_t i = 0; i < probabilities.size(); ++i) {
        const size_t begin = span.token_at[i], end = span.token_at[i + 1];
        if (begin < span.begin || end > span.end || model.tokenizer().is_special(prompt.ids[i])) continue;
        probabilities[i] = mean_byte_probability(of_bytes, begin - span.begin, end - span.begin);
    }
    return probabilities;
}

}  // namespace kvscope::engine
