#include "engine/tasks/infinitebench/sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/tasks/longbench/python_text.h"

namespace kvscope::engine::infinitebench {
namespace {

constexpr std::string_view letters = "ABCD";

// The prompts contain the originals' errors of spelling and spacing.
constexpr Set all_sets[] = {
    {"passkey", 6, "accuracy", first_digits, first_digits,
     "There is an important info hidden inside a lot of irrelevant text. Find it and memorize it. I will quiz you "
     "about the important information.\n\n{context}",
     "\n\n{input}\n\nThe pass key is"},
    {"number_string", 12, "accuracy", first_digits, first_digits,
     "There is an important info hidden inside a lot of irrelevant text. Find it. I will quiz you about the important "
     "information there.\n\n{context}",
     "\n\n{input}\n\nThe sequence of digits is"},
    {"kv_retrieval", 50, "accuracy", word, word,
     "Extract the value corresponding to the specified key in the JSON object below.\n\n{context}", "\n\n{input}"},
    {"longdialogue_qa_eng", 40, "accuracy", name, name_as_kvpress,
     "Below is a dialogue script where one random occurrence of a character name is replaced with \"$$MASK$$\", and "
     "you should try to guess who that character is.\n\n{context}",
     "\n\nThe name that has been replaced with $$MASK$$ is likely"},
    {"longbook_sum_eng", 1200, "rouge_lsum_score", summary, summary, "Summarize the book below.\n\n{context}",
     "\n\nSummary:"},
    {"longbook_choice_eng", 40, "accuracy", choice, choice_as_kvpress,
     "Read the book and answer the question.\n\n{context}",
     "\n\nQuestion: {input}\nA. {A}\nB. {B}\nC. {C}\nD. {D}\n\nThe letter of the correct answer is"},
    {"longbook_qa_eng", 40, "qa_f1_score", words_f1, words_f1,
     "Read the book and answer the question. Be very concise in your answer.\n\n{context}",
     "\n\nQuestion: {input}\nAnswer:"},
    {"longbook_qa_chn", 40, "qa_f1_zh_score", characters_f1, characters_f1, "阅读以下书籍然后回答问题。\n\n{context}",
     "\n\n问题：{input}\n答案："},
    {"math_find", 3, "accuracy", first_number, first_number, "{prefix}\n\n{context}", "\n\n{input}"},
    {"math_calc", 30000, "math_calc_score", leading_numbers, leading_numbers,
     "Let us calculate the intermediate values of an expression.\n\nExpression: 1 + 3 + 4\nValues: [1, 4, "
     "8]\n\nExpression: 8 - 3 + 2 - 4\nValues: [8, 5, 7, 3]\n\nExpression: {context}",
     "\nValues:"},
    {"code_run", 5, "accuracy", last_integer, last_integer,
     "There is a function called {func} in the following Python code.\n\n{context}",
     "\n\nPlease compute the exact value of {func_call}. The value of {func_call} is"},
    {"code_debug", 5, "accuracy", function, function_as_kvpress,
     "Following is a Python code where exactly one of the functions/methods has a deliberate error that makes it "
     "crash.\n\n{context}",
     "\n\nOptions:\nA. {A}\nB. {B}\nC. {C}\nD. {D}\n\nThe correct option is:"},
};

using Values = std::vector<std::pair<std::string_view, std::string>>;  ///< by the names of places in a template

/// Replaces each place such as "{input}" once. Replacements may contain braces.
std::string filled(std::string_view format, const Values& values) {
    std::string text;
    for (size_t at = format.find('{'); at != std::string_view::npos; at = format.find('{')) {
        const size_t end = format.find('}', at);
        text += format.substr(0, at);
        text += std::ranges::find(values, format.substr(at + 1, end - at - 1), &Values::value_type::first)->second;
        format.remove_prefix(end + 1);
    }
    text += format;
    return text;
}

/// Returns the first call such as "func_3(-7)".
std::string function_call_in(const Record& record) {
    const std::string_view text = record.filled_text("input");
    constexpr std::string_view begin = "func_", digits = "0123456789";
    for (size_t at = text.find(begin); at != std::string_view::npos; at = text.find(begin, at + 1)) {
        const size_t open = text.find_first_not_of(digits, at + begin.size());
        if (open == std::string_view::npos || open == at + begin.size() || text[open] != '(') continue;
        const size_t number = open + (text.substr(open + 1).starts_with('-') ? 2 : 1);
        const size_t close = text.find_first_not_of(digits, number);
        if (close == std::string_view::npos || close == number || text[close] != ')') continue;
        return std::string(text.substr(at, close + 1 - at));
    }
    record.refuse(R"(a call such as func_3(-7) in "input")", record.at("input"));
}

/// Returns the sentence before the list of numbers, which asks for "the largest number" if the question begins with
/// "The largest number of".
std::string question_about_list(const Record& record) {
    const std::string& text = record.filled_text("input");
    for (size_t at = text.find("The "); at != std::string::npos; at = text.find("The ", at + 1)) {
        const std::string_view line = std::string_view(text).substr(at, text.find('\n', at) - at);
        const size_t end = line.rfind(" of");
        // At least one character is between "The " and " of".
        if (end == std::string_view::npos || end <= std::string_view("The ").size()) continue;
        const auto target = longbench::in_lower_case(longbench::characters_of(line.substr(0, end)));
        return fmt::format("What is {} in the following list?", longbench::utf8_of(target));
    }
    record.refuse(R"(a question such as "The largest number of …" as "input")", record.at("input"));
}

std::vector<std::string> options_of(const Record& record) {
    auto options = record.texts("options");
    if (options.size() < letters.size()) record.refuse("four \"options\"", record.at("options"));
    return options;
}

/// Adds the texts and numbers of a value and its lists.
void add_texts(const Record& record, const nlohmann::json& value, std::vector<std::string>& texts) {
    if (value.is_array())
        for (const auto& element : value) add_texts(record, element, texts);
    else if (value.is_string())
        texts.push_back(value.get<std::string>());
    else if (value.is_number())
        texts.push_back(value.dump());
    else
        record.refuse("texts or numbers as \"answer\"", value);
}

}  // namespace

bool Set::is_retrieval() const { return name == "passkey" || name == "number_string" || name == "kv_retrieval"; }
bool Set::has_choices() const { return after.find("{A}") != std::string_view::npos; }

longbench::TwoPartPrompt Set::prompt_of(const Record& record) const {
    Values values{{"context", record.filled_text("context")}};
    const auto has = [&](std::string_view place) {
        return (std::string(before) + std::string(after)).find(place) != std::string::npos;
    };
    if (has("{input}")) values.emplace_back("input", record.text("input"));
    if (has("{prefix}")) values.emplace_back("prefix", question_about_list(record));
    if (has("{func}")) {
        const std::string call = function_call_in(record);
        values.emplace_back("func", call.substr(0, call.find('(')));
        values.emplace_back("func_call", call);
    }
    if (has_choices()) {
        const auto options = options_of(record);
        for (size_t i = 0; i < letters.size(); ++i) values.emplace_back(letters.substr(i, 1), options[i]);
    }
    return {filled(before, values), filled(after, values)};
}

std::vector<std::string> Set::answers_of(const Record& record) const {
    std::vector<std::string> answers;
    add_texts(record, record.at("answer"), answers);
    if (answers.empty()) record.refuse("at least one text or number as \"answer\"", record.at("answer"));
    if (!has_choices()) return answers;
    if (answers.size() == 2 && answers[1].size() == 1 && letters.find(answers[1]) != std::string_view::npos)
        return answers;
    const auto options = options_of(record);
    const auto right = std::ranges::find(options, answers.front());
    const auto place = static_cast<size_t>(right - options.begin());
    if (answers.size() != 1 || place >= letters.size())
        record.refuse("one of the four \"options\" as \"answer\"", record.at("answer"));
    answers.emplace_back(letters.substr(place, 1));
    return answers;
}

Scorer Set::scorer(bool as_kvpress) const {
    return {std::string(metric), as_kvpress ? score_as_kvpress : score,
            as_kvpress ? "infinitebench as in kvpress" : "infinitebench"};
}

std::span<const Set> sets() { return all_sets; }

std::vector<std::string_view> names_of_sets() {
    std::vector<std::string_view> names;
    for (const Set& set : sets()) names.push_back(set.name);
    return names;
}

}  // namespace kvscope::engine::infinitebench
