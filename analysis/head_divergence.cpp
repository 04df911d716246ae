#include "analysis/head_divergence.h"

#include <fmt/format.h>

#include "analysis/measures/kv_head_jsd.h"
#include "analysis/ranking.h"

namespace kvscope::analysis {

void require_head_divergence(const trace::Reader& reader, int prompt) {
    check_prompt(reader, prompt);
    require_window_attention(reader, prompt);
    const trace::PromptAttributes& attributes = reader.prompt(prompt);
    if (attributes.visible_tokens() > attributes.window) return;
    throw NothingToShow(
        fmt::format("{}: prompt {} has {} tokens, no more than its window of {}. Heads are compared by their attention "
                    "before the window; record a longer prompt or a smaller window",
                    reader.path().string(), prompt, attributes.visible_tokens(), attributes.window));
}

std::vector<double> mean_head_divergences_of_layer(const trace::Reader& reader, int prompt, size_t layer) {
    const auto n_heads = static_cast<size_t>(reader.model().n_heads);
    const auto n_kv_heads = static_cast<size_t>(reader.model().n_kv_heads);
    return mean_divergences_from_other_heads(kv_head_jsd(reader.window_attention(prompt, layer), n_heads, n_kv_heads,
                                                         static_cast<size_t>(reader.prompt(prompt).window)),
                                             n_kv_heads);
}

}  // namespace kvscope::analysis
