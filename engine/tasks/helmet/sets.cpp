#include "engine/tasks/helmet/sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "common/utf8.h"
#include "engine/common/engine_error.h"
#include "policies/registry/name_matching.h"

namespace kvscope::engine::helmet {
namespace {

// The prompts contain the originals' errors of spelling.
constexpr std::string_view documents_instruction =
    "Use the given documents to write a concise and short answer to the question. Write your answer in the following "
    "format:\nAnswer: [answer]\n\n{demos}";
constexpr std::string_view documents_question = "\n\nQuestion: {question}\n";
constexpr std::string_view ranking_instruction =
    "You are provided with a list of documents, each indicated by their ID. Rank each document based on their "
    "relevance to the question in descending order from most relelvant to least relevant texts. Include all documents "
    "in the rankings. Write your answer using the unique IDs, with the following format:\nRanking: ID3 > ID1 > "
    "ID2\n\n{demos}";
constexpr std::string_view json_question =
    "\n\nExtract the value corresponding to the specified key in the JSON object below.\n\n{demos}Key: {question}\n";
constexpr std::string_view needle_instruction =
    "A special magic {type_needle_v} is hidden within the following text. Make sure to memorize it. I will quiz you "
    "about the {type_needle_v} afterwards.\n";
constexpr std::string_view needle_question =
    "\nWhat is the special magic {type_needle_v} for {query} mentioned in the provided text?\n";
constexpr std::string_view needle_answer =
    "The special magic {type_needle_v} for {query} mentioned in the provided text is";
constexpr std::string_view needles_instruction =
    "Some special magic {type_needle_v} are hidden within the following text. Make sure to memorize it. I will quiz "
    "you about the {type_needle_v} afterwards.\n";
constexpr std::string_view needles_question =
    "\nWhat are all the special magic {type_needle_v} for {query} mentioned in the provided text?\n";
constexpr std::string_view needles_answer =
    "The special magic {type_needle_v} for {query} mentioned in the provided text are";
constexpr std::string_view variables_instruction =
    "{example}Memorize and track the chain(s) of variable assignment hidden in the following text.\n\n";
constexpr std::string_view variables_question =
    "\nQuestion: Find all variables that are assigned the value {query} in the text above.\n";
constexpr std::string_view variables_answer =
    "Answer: According to the chain(s) of variable assignment in the text above, {num_v} variables are assigned the "
    "value {query}, they are:";
constexpr std::string_view common_words_instruction =
    "{example}Below is a numbered list of words. In these words, some appear more often than others. Memorize the ones "
    "that appear most often.\n";
constexpr std::string_view common_words_question = "\nQuestion: What are the 10 most common words in the above list?\n";
constexpr std::string_view common_words_answer = "Answer: The top 10 words that appear most often in the list are:";
constexpr std::string_view frequent_words_instruction =
    "Read the following coded text and track the frequency of each coded word. Find the three most frequently appeared "
    "coded words.\n";
constexpr std::string_view frequent_words_question =
    "\nQuestion: Do not provide any explanation. Please ignore the dots '....'. What are the three most frequently "
    "appeared words in the above coded text?\n";
constexpr std::string_view frequent_words_answer =
    "Answer: According to the coded text above, the three most frequently appeared words are:";
constexpr std::string_view ruler_qa_instruction =
    "Answer the question based on the given documents. Only give me the answer and do not output any other words.\n\n"
    "The following are given documents.\n\n";
constexpr std::string_view ruler_qa_question =
    "\n\nAnswer the question based on the given documents. Only give me the answer and do not output any other "
    "words.\n\nQuestion: {question}\n";

constexpr Set needles(std::string_view name, std::string_view mark, int64_t n_new) {
    return {name, mark, Kind::ruler, n_new, needle_instruction, needle_question, needle_answer};
}
constexpr Set several_needles(std::string_view name, std::string_view mark, int64_t n_new) {
    return {name, mark, Kind::ruler, n_new, needles_instruction, needles_question, needles_answer};
}
constexpr Set documents(std::string_view name, std::string_view mark) {
    return {name, mark, Kind::documents, 20, documents_instruction, documents_question, "Answer:"};
}

constexpr Set all_sets[] = {
    {"json_kv", "json_kv", Kind::json, 100, "", json_question, "Corresponding value:"},
    documents("kilt_nq", "nq"),
    documents("kilt_triviaqa", "triviaqa"),
    documents("kilt_hotpotqa", "hotpotqa"),
    documents("kilt_popqa_3", "popqa"),
    {"msmarco_rerank_psg", "msmarco", Kind::ranking, 200, ranking_instruction, "\n\nQuery: {question}\n", "Ranking:"},
    needles("ruler_niah_s_1", "niah_single_1", 50),
    needles("ruler_niah_s_2", "niah_single_2", 50),
    needles("ruler_niah_s_3", "niah_single_3", 50),
    needles("ruler_niah_mk_1", "niah_multikey_1", 50),
    needles("ruler_niah_mk_2", "niah_multikey_2", 50),
    needles("ruler_niah_mk_3", "niah_multikey_3", 100),
    several_needles("ruler_niah_mq", "niah_multiquery", 100),
    several_needles("ruler_niah_mv", "niah_multivalue", 50),
    {"ruler_cwe", "cwe", Kind::ruler, 100, common_words_instruction, common_words_question, common_words_answer},
    {"ruler_fwe", "fwe", Kind::ruler, 50, frequent_words_instruction, frequent_words_question, frequent_words_answer},
    {"ruler_vt", "vt", Kind::ruler, 50, variables_instruction, variables_question, variables_answer},
    {"ruler_qa_1", "qa_1", Kind::ruler, 50, ruler_qa_instruction, ruler_qa_question, "Answer:"},
    {"ruler_qa_2", "qa_2", Kind::ruler, 50, ruler_qa_instruction, ruler_qa_question, "Answer:"},
};

std::vector<std::string> names_of_sets() {
    std::vector<std::string> names;
    for (const Set& set : all_sets) names.emplace_back(set.name);
    return names;
}

}  // namespace

bool Set::has_text_metric() const {
    return kind == Kind::documents || kind == Kind::json || name.starts_with("ruler_qa");
}

std::span<const Set> sets() { return all_sets; }

const Set& set_named(std::string_view name) {
    for (const Set& set : all_sets)
        if (policies::same_name(set.name, name)) return set;
    const auto names = names_of_sets();
    throw UsageError(fmt::format("--subset: expected a set of HELMET, found '{}'.{} Sets: {}", name,
                                 policies::did_you_mean(name, names), policies::joined(names)));
}

const Set& set_of_file(const std::string& path) {
    const std::filesystem::path file(path);
    const std::string name = utf8_lossy(file.filename().string());
    const std::string folder = utf8_lossy(file.parent_path().filename().string());
    for (const Set& set : all_sets)
        if (folder == set.mark || name.starts_with(set.mark)) return set;
    throw UsageError(
        fmt::format("{}: expected a file of HELMET, such as json_kv/test_k105_dep6.jsonl or "
                    "kilt/nq-dev-multikilt_1000_k50_dep6.jsonl, "
                    "found another name: name the set with --subset. Sets: {}",
                    path, policies::joined(names_of_sets())));
}

}  // namespace kvscope::engine::helmet
