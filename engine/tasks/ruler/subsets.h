#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/tasks/api/task.h"
#include "engine/tasks/ruler/prompt.h"

namespace kvscope::engine::ruler {

/// One of RULER's 13 settings (synthetic.yaml, constants.py).
struct Subset {
    std::string_view name;
    int64_t n_new = 0;
    Scorer scorer;
    std::vector<std::string_view> files{};  ///< options of the files that the subset needs
    MakePrompts (*prompts)(const SubsetRequest&) = nullptr;
};

[[nodiscard]] std::span<const Subset> subsets();

/// A request must outlive the returned function. All read the files once. @throws UsageError for malformed files
[[nodiscard]] MakePrompts needle_prompts(const SubsetRequest& request);           ///< niah_*
[[nodiscard]] MakePrompts variable_prompts(const SubsetRequest& request);         ///< vt
[[nodiscard]] MakePrompts common_word_prompts(const SubsetRequest& request);      ///< cwe
[[nodiscard]] MakePrompts frequent_word_prompts(const SubsetRequest& request);    ///< fwe
[[nodiscard]] MakePrompts document_prompts_squad(const SubsetRequest& request);   ///< qa_1
[[nodiscard]] MakePrompts document_prompts_hotpot(const SubsetRequest& request);  ///< qa_2

}  // namespace kvscope::engine::ruler
