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

const Family* find_family(const std::function<bool(const Family&)>& matches, std::string_view model_name) {
    const std::string name = lower_case(model_name);
    const Family* found = nullptr;
    int best = -1;
    for (const Family& family : families()) {
        const bool is_named = name.find(family.part_of_name) != std::string::npos;
        const int rank = family.part_of_name.empty() ? 1 : is_named ? 2 : 0;
        if (rank < best || !matches(family)) continue;
        best = rank;
        found = &family;
    }
    return found;
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
