#include "engine/tasks/scbench/sets.h"

#include <fmt/format.h>

#include <vector>

#include "engine/common/engine_error.h"
#include "policies/registry/name_matching.h"

namespace kvscope::engine::scbench {
namespace {

constexpr Set plain(std::string_view name, Answering answering, std::string_view before = "") {
    return {name, answering, before, "{input}", "{input}", "{input}"};
}

constexpr Set of_questions(std::string_view name, Answering answering, std::string_view before,
                           std::string_view question) {
    return {name, answering, before, question, question, question};
}

// The prompts contain the originals' errors of wording.
constexpr Set all_sets[] = {
    plain("scbench_kv", {"kv_retrieval", 150},
          "Extract the value corresponding to the specified key in the JSON object below.\n\n"),
    plain("scbench_prefix_suffix", {"kv_retrieval", 150}),
    plain("scbench_vt", {"string_match_all", 30}),
    of_questions("scbench_qa_eng", {"longdialogue_qa_eng", 40},
                 "Read the book and answer the question. Be very concise in your answer.\n\n",
                 "Question: {input}\nAnswer:"),
    of_questions("scbench_qa_chn", {"longbook_qa_chn", 40}, "阅读以下书籍然后回答问题。\n\n", "问题：{input}\n答案："),
    {"scbench_choice_eng",
     {"longbook_choice_eng", 40},
     "Read the book and answer the question.\n\n",
     "Question: {input}{choices}The the correct answer is",
     "Question: {input}{choices}The letter of the correct answer is",
     "Question: {input}{choices}The the correct answer is"},
    plain("scbench_many_shot", {"longdialogue_qa_eng", 10}),
    {"scbench_mf", {"math_find", 5}, "{prefix}\n\n", "{input}", "{target}\n\n{input}", "{target}\n\n{input}"},
    plain("scbench_summary", {"longbook_sum_eng", 200}),
    plain("scbench_summary_with_needles", {}),
};

constexpr Part all_parts[] = {{"scbench_summary", {"longbook_sum_eng", 800}}, {"scbench_passkey", {"passkey", 15}}};

}  // namespace

std::span<const Set> sets() { return all_sets; }
std::span<const Part> parts() { return all_parts; }

const Set& set_named(std::string_view name, std::string_view origin) {
    std::vector<std::string> names;
    for (const Set& set : all_sets) {
        if (policies::same_name(set.name, name)) return set;
        names.emplace_back(set.name);
    }
    if (name.starts_with("scbench_repoqa"))
        throw UsageError(fmt::format(
            "{}: the scores of {} find functions with parsers of six programming languages, which kvscope does not "
            "contain: use another set: {}",
            origin, name, policies::joined(names)));
    throw UsageError(
        fmt::format("{}: expected a set of SCBench, found '{}': name the set of the file with --subset.{} "
                    "Sets: {}",
                    origin, name, policies::did_you_mean(name, names), policies::joined(names)));
}

}  // namespace kvscope::engine::scbench
