#include "app/results/names.h"

#include <algorithm>

#include "common/full_policy.h"

namespace kvscope::results {
namespace {

constexpr std::string_view own_prefix = "kvscope: ", before_budget = " @ ";

constexpr std::pair<std::string_view, std::string_view> dtypes[] = {
    {"f32", "float32"}, {"bf16", "bfloat16"}, {"f16", "float16"}};

constexpr std::pair<std::string_view, std::string_view> ruler_tasks[] = {{"vt", "ruler_vt"},
                                                                         {"cwe", "ruler_cwe"},
                                                                         {"fwe", "ruler_fwe"},
                                                                         {"qa_1", "ruler_qa_squad"},
                                                                         {"qa_2", "ruler_qa_hotpot"}};
constexpr std::string_view needle_tasks[] = {"niah_single_", "niah_multikey_", "niah_multivalue", "niah_multiquery"};
constexpr std::string_view longbench_prefix = "longbench_";

/// Returns the text with '_' for all characters that file names may not contain everywhere.
std::string as_file_name(std::string text) {
    for (char& c : text) {
        const bool is_plain =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
        if (!is_plain) c = '_';
    }
    return text;
}

}  // namespace

std::string short_dtype(std::string_view name) {
    constexpr std::string_view module = "torch.";
    if (name.starts_with(module)) name.remove_prefix(module.size());
    for (const auto& [dtype, in_pytorch] : dtypes)
        if (name == in_pytorch) return std::string(dtype);
    return "";
}

std::string name_of_dtype_in_pytorch(std::string_view dtype) {
    for (const auto& [known, in_pytorch] : dtypes)
        if (dtype == known) return std::string(in_pytorch);
    return "auto";
}

std::string text_of_own_run(const std::string& setting, const std::string& budget) {
    std::string text = std::string(own_prefix) + setting;
    if (!budget.empty()) text += std::string(before_budget) + budget;
    return text;
}

std::optional<OwnRun> own_run_of_text(std::string_view text) {
    if (!text.starts_with(own_prefix)) return std::nullopt;
    text.remove_prefix(own_prefix.size());
    const size_t at = text.rfind(before_budget);
    try {
        OwnRun run{policies::parse_policy(text.substr(0, at)), std::nullopt};
        if (at != std::string_view::npos) run.budget = policies::parse_budget(text.substr(at + before_budget.size()));
        if (!run.budget && run.policy.definition->name != full_policy) return std::nullopt;
        return run;
    } catch (const policies::ParameterError&) {
        return std::nullopt;
    } catch (const policies::BudgetError&) {
        return std::nullopt;
    }
}

std::string without_compression_ratio(std::string_view press) {
    std::string text(press);
    constexpr std::string_view name = "compression_ratio=";
    for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at)) {
        if (at > 0 && text[at - 1] != '(' && text[at - 1] != ' ') {  // another parameter
            at += name.size();
            continue;
        }
        size_t end = std::min(text.find_first_of(",)", at), text.size());
        if (text.substr(end, 2) == ", ") end += 2;
        text.erase(at, end - at);
    }
    return text;
}

std::string lm_eval_task(const std::string& task, const std::string& subset) {
    if (task == "ruler") {
        const auto* const known =
            std::ranges::find(ruler_tasks, std::string_view(subset), [](const auto& pair) { return pair.first; });
        return known != std::end(ruler_tasks) ? std::string(known->second) : as_file_name(subset);
    }
    if (task == "longbench") return std::string(longbench_prefix) + as_file_name(subset.substr(0, subset.find('/')));
    return as_file_name(subset.empty() ? task : task + "_" + subset);
}

std::pair<std::string, std::string> task_and_subset(const std::string& lm_eval_task) {
    for (const auto& [subset, name] : ruler_tasks)
        if (lm_eval_task == name) return {"ruler", std::string(subset)};
    for (const std::string_view needle : needle_tasks)
        if (lm_eval_task.starts_with(needle)) return {"ruler", lm_eval_task};
    if (lm_eval_task.starts_with(longbench_prefix)) return {"longbench", lm_eval_task.substr(longbench_prefix.size())};
    return {lm_eval_task, ""};
}

}  // namespace kvscope::results
