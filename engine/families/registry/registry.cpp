#include "engine/families/registry/registry.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "common/lower_case.h"

namespace kvscope::checkpoint {

const Family& family_named(std::string_view name) {
    for (const Family& family : families())
        if (family.name == name) return family;
    throw std::out_of_range("no model family is named " + std::string(name));
}

const Family* find_family(const std::function<bool(const Family&)>& matches,
                          const std::function<std::string()>& model_name) {
    std::vector<const Family*> found;
    for (const Family& family : families())
        if (matches(family)) found.push_back(&family);
    std::ranges::reverse(found);  // of several named families, the alphabetically last wins: smollm2 before mistral
    if (found.size() < 2) return found.empty() ? nullptr : found.front();
    const std::string name = lower_case(model_name());
    // A family with an empty `part_of_name` accepts every name, so it comes last.
    std::ranges::stable_sort(found, {}, [](const Family* family) { return family->part_of_name.empty(); });
    const auto named = std::ranges::find_if(
        found, [&](const Family* family) { return name.find(family->part_of_name) != std::string::npos; });
    return named == found.end() ? found.front() : *named;
}

std::string supported_models() {
    std::string titles;
    for (const Family& family : families()) titles += (titles.empty() ? "" : ", ") + family.title;
    return "supported are " + titles;
}

std::string kind_of_refused_model(std::string_view name) {
    const std::string lower = lower_case(name);
    constexpr std::pair<std::string_view, std::string_view> kinds[] = {
        {"moe", "a mixture of experts"},
        {"mixtral", "a mixture of experts"},
        {"llama4", "a mixture of experts"},
        {"deepseek", "a model with latent attention or experts"},
        {"qwen3_next", "a model with linear attention"},
        {"qwen3next", "a model with linear attention"},
        {"qwen3_5", "a model with linear attention"},
        {"qwen35", "a model with linear attention"},
        {"mamba", "a model with linear attention"},
        {"rwkv", "a model with linear attention"},
        {"linear", "a model with linear attention"},
        {"vl", "a vision model"},
        {"vision", "a vision model"},
        {"mllama", "a vision model"},
        {"llava", "a vision model"},
        {"conditionalgeneration", "not a plain text decoder"},
        {"classification", "a classifier, without a language model head"},
        {"reward", "a reward model, without a language model head"},
    };
    const auto* found = std::find_if(std::begin(kinds), std::end(kinds),
                                     [&](const auto& kind) { return lower.find(kind.first) != std::string::npos; });
    return found == std::end(kinds) ? std::string() : std::string(found->second);
}

}  // namespace kvscope::checkpoint
