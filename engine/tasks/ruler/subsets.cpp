#include "engine/tasks/ruler/subsets.h"

namespace kvscope::engine::ruler {

std::span<const Subset> subsets() {
    static const std::vector<Subset> all = [] {
        const std::vector<std::string_view> essays{"essays", "punkt"};
        const auto needle = [](std::string_view name, std::vector<std::string_view> files = {}) {
            return Subset{name, 128, string_match_all(), std::move(files), needle_prompts};
        };
        return std::vector<Subset>{
            needle("niah_single_1"),
            needle("niah_single_2", essays),
            needle("niah_single_3", essays),
            needle("niah_multikey_1", essays),
            needle("niah_multikey_2"),
            needle("niah_multikey_3"),
            needle("niah_multivalue", essays),
            needle("niah_multiquery", essays),
            {"vt", 30, string_match_all(), {}, variable_prompts},
            {"cwe", 120, string_match_all(), {}, common_word_prompts},
            {"fwe", 50, string_match_all(), {}, frequent_word_prompts},
            {"qa_1", 32, string_match_part(), {"squad"}, document_prompts_squad},
            {"qa_2", 32, string_match_part(), {"hotpotqa"}, document_prompts_hotpot},
        };
    }();
    return all;
}

}  // namespace kvscope::engine::ruler
