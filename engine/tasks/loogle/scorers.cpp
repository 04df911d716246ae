#include "engine/tasks/loogle/scorers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "engine/tasks/api/python_literal.h"
#include "engine/tasks/longbench/python_text.h"
#include "engine/tasks/longbench/scorers.h"

namespace kvscope::engine::loogle {
namespace {

using Words = std::vector<std::u32string>;

Words words_of(std::string_view text) { return longbench::words_of(longbench::characters_of(text)); }

std::string_view or_none(std::string_view prediction) { return prediction.empty() ? "None" : prediction; }

std::map<Words, int> count_parts(std::span<const std::u32string> words, size_t n) {
    std::map<Words, int> counts;
    for (; words.size() >= n; words = words.subspan(1)) {
        const auto part = words.first(n);
        ++counts[Words(part.begin(), part.end())];
    }
    return counts;
}

/// Share of the runs of n words in `words` that are also in `reference`, each as often as there. `shared` is their
/// number.
double precision(const Words& words, const Words& reference, size_t n, int& shared) {
    const auto expected = count_parts(reference, n);
    shared = 0;
    for (const auto& [part, count] : count_parts(words, n))
        if (const auto found = expected.find(part); found != expected.end()) shared += std::min(count, found->second);
    const size_t n_parts = words.size() >= n ? words.size() - n + 1 : 0;
    return shared / static_cast<double>(std::max<size_t>(n_parts, 1));
}

bool have_common_word(const std::string& a, const std::string& b) {
    const Words in_b = words_of(b);
    return std::ranges::any_of(words_of(a), [&](const auto& word) { return std::ranges::count(in_b, word) > 0; });
}

}  // namespace

double bleu(std::string_view prediction, std::string_view answer, size_t n) {
    const Words words = words_of(or_none(prediction)), reference = words_of(answer);
    int n_shared = 0;
    (void)precision(words, reference, 1, n_shared);
    if (n_shared == 0) return 0;
    const double share = precision(words, reference, n, n_shared);
    const double shortness = static_cast<double>(reference.size()) / static_cast<double>(words.size());
    const double brevity = words.size() > reference.size() ? 1 : std::exp(1 - shortness);
    // NLTK takes the logarithm of the smallest normal number if no part is shared.
    return brevity * std::exp(std::log(n_shared == 0 ? std::numeric_limits<double>::min() : share));
}

double rouge_n(std::string_view prediction, std::string_view answer, size_t n) {
    return longbench::rouge_n_recall(or_none(prediction), answer, n);
}

double rouge_l(std::string_view prediction, std::string_view answer) {
    return longbench::rouge_l_recall(or_none(prediction), answer);
}

double exact_match(std::string_view prediction, const nlohmann::json& names) {
    const auto said = read_python_literal(prediction);
    if (!said || !said->is_object()) return 0;
    double n_right = 0;
    for (const auto& [mask, name] : names.items()) n_right += said->contains(mask) && (*said)[mask] == name ? 1 : 0;
    return n_right / static_cast<double>(names.size());
}

double partial_match(std::string_view prediction, const nlohmann::json& names) {
    const auto said = read_python_literal(prediction);
    if (!said || !said->is_object()) return 0;
    double n_right = 0;
    for (const auto& [mask, name] : names.items()) {
        const auto found = said->find(mask);
        if (found == said->end()) continue;
        if (!found->is_string()) return 0;
        n_right += have_common_word(name.get<std::string>(), found->get<std::string>()) ? 1 : 0;
    }
    return n_right / static_cast<double>(names.size());
}

}  // namespace kvscope::engine::loogle
