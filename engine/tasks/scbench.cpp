#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "common/utf8.h"
#include "engine/common/engine_error.h"
#include "engine/tasks/api/benchmark_files.h"
#include "engine/tasks/api/python_format.h"
#include "engine/tasks/api/record.h"
#include "engine/tasks/api/sample_line.h"
#include "engine/tasks/longbench/middle_cut.h"
#include "engine/tasks/longbench/python_text.h"
#include "engine/tasks/scbench/scorers.h"
#include "engine/tasks/scbench/sets.h"

namespace kvscope::engine {
namespace scbench_file {
namespace {

using scbench::Answering;
using scbench::Labels;
using scbench::Set;

constexpr int64_t n_answer_tokens = 150;
constexpr int64_t most_turns = 64;
constexpr int64_t n_unused_tokens = 1000;  // run_scbench.py leaves them free in the mode multi-request
constexpr std::string_view letters = "ABCD";

/// What all samples share.
struct Wanted {
    const Set& set;
    bool in_conversation = false;  ///< the mode multi-turn
    bool splits_texts = false;     ///< whether a text that SCBench's code reads as a list is a list of its characters
    int64_t n_turns = 0;
    std::string path{};
};

/// One question about a context.
struct Turn {
    std::string input;
    std::string answer;                ///< as a later question repeats it
    std::vector<std::string> shown{};  ///< for results
    std::vector<std::string> options{};
    Labels labels{};
    Answering answering;
    std::string task{};  ///< of mixed sets
};

std::vector<std::string> texts_or_refuse(const Record& record, const nlohmann::json& list, std::string_view expected) {
    std::vector<std::string> texts;
    if (list.is_array())
        for (const auto& item : list)
            if (item.is_string()) texts.push_back(item);
    if (texts.empty() || texts.size() != list.size()) record.refuse(std::string(expected), list);
    return texts;
}

std::vector<std::string> characters_in(const std::string& text) {
    std::vector<std::string> characters;
    for (size_t at = 0; at < text.size();) {
        const auto character = decode_utf8_character(text, at);
        characters.push_back(text.substr(at, character.bytes));
        at += character.bytes;
    }
    return characters;
}

Labels labels_of(const Record& record, const Wanted& wanted, const Turn& turn, const nlohmann::json& answer) {
    const std::string_view metric = turn.answering.metric;
    if (metric == "math_find") {
        const auto& number = answer.is_array() && !answer.empty() ? answer.front() : answer;
        if (!number.is_number()) record.refuse("a number as \"answer\"", answer);
        return {{}, number};
    }
    if (metric == "longbook_choice_eng") {
        const auto place = std::ranges::find(turn.options, turn.answer);
        if (turn.options.size() != letters.size() || place == turn.options.end())
            record.refuse("four \"options\" with the \"answer\"", answer);
        return {{turn.answer, std::string(1, letters[static_cast<size_t>(place - turn.options.begin())])}, {}};
    }
    if (!answer.is_string()) return {texts_or_refuse(record, answer, "a text, or a list of texts, as \"answer\""), {}};
    if (turn.answer.empty()) record.refuse("a text that is not empty as \"answer\"", answer);
    const bool reads_list = metric == "string_match_all" || metric == "longbook_qa_chn" ||
                            (metric == "longdialogue_qa_eng" && wanted.set.name == "scbench_many_shot");
    return {reads_list && wanted.splits_texts ? characters_in(turn.answer) : std::vector{turn.answer}, {}};
}

Turn turn_of(const Record& record, const Wanted& wanted, const nlohmann::json& object) {
    if (!object.is_object() || !object.contains("input") || !object["input"].is_string() || !object.contains("answer"))
        record.refuse(R"(objects such as {"input": "…", "answer": "…"} in "multi_turns")", object);
    Turn turn{.input = object["input"], .answer = python_text_of(object["answer"]), .answering = wanted.set.answering};
    if (wanted.set.is_mixed()) {
        const auto found = std::ranges::find_if(scbench::parts(), [&](const scbench::Part& part) {
            return object.contains("task") && object["task"] == part.task;
        });
        if (found == scbench::parts().end())
            record.refuse("\"task\": \"scbench_summary\" or \"scbench_passkey\" in \"multi_turns\"", object);
        turn.answering = found->answering;
        turn.task = found->task;
    }
    if (turn.answering.metric == "longbook_choice_eng" && object.contains("options"))
        turn.options = texts_or_refuse(record, object["options"], "a list of texts as \"options\"");
    turn.labels = labels_of(record, wanted, turn, object["answer"]);
    turn.shown =
        object["answer"].is_string() || turn.labels.texts.empty() ? std::vector{turn.answer} : turn.labels.texts;
    return turn;
}

std::vector<Turn> turns_of(const Record& record, const Wanted& wanted) {
    const auto& list = record.at("multi_turns");
    if (!list.is_array() || list.empty()) record.refuse("a list as \"multi_turns\"", list);
    std::vector<Turn> turns;
    for (const auto& object : list) {
        if (static_cast<int64_t>(turns.size()) == wanted.n_turns) break;
        turns.push_back(turn_of(record, wanted, object));
    }
    return turns;
}

/// Returns "What is the largest number?" for "The largest number is": create_multiturn_prompt() in eval_utils.py.
std::string question_for(const Record& record, const std::string& input) {
    constexpr std::string_view first = "The ", last = " is";
    for (size_t at = input.find(first); at != std::string::npos; at = input.find(first, at + 1)) {
        const std::string line = input.substr(at, input.find('\n', at) - at);
        const size_t end = line.rfind(last);
        if (end == std::string::npos || end <= first.size()) continue;
        std::string target;
        for (const char32_t c : longbench::in_lower_case(longbench::characters_of(line.substr(0, end))))
            append_utf8(target, c);
        return fmt::format("What is {}?", target);
    }
    record.refuse("an \"input\" with \"The … is\"", input);
}

std::string text_of_turn(const Record& record, std::string_view format, const Turn& turn) {
    return python_format(format, [&](std::string_view name) -> std::string {
        if (name == "input") return turn.input;
        if (name == "target") return question_for(record, turn.input);
        std::string choices = "\n";
        for (size_t i = 0; i < letters.size(); ++i) choices += fmt::format("{}. {}\n", letters[i], turn.options[i]);
        return choices + "\n";
    });
}

/// Returns the length for the context (and, in a conversation, the first question) that run_scbench.py leaves.
int64_t max_length_of(const SampleRequest& request, const Wanted& wanted, const std::vector<Turn>& turns) {
    if (const auto asked = request.options.values.automatic_integer("max_length")) return *asked;
    const auto n_turns = static_cast<int64_t>(turns.size());
    int64_t n_answers = longbench::n_new_of(request, wanted.set.answering.n_new) * n_turns;
    if (wanted.set.is_mixed()) {
        n_answers = 0;
        for (const auto& part : scbench::parts()) n_answers += longbench::n_new_of(request, part.answering.n_new);
        n_answers = n_answers * n_turns / 2;
    }
    const int64_t length = request.context_length - n_answers - (wanted.in_conversation ? 0 : n_unused_tokens);
    if (length < 2)
        throw UsageError(fmt::format(
            "{}: the model's context of {} tokens has no space for a context and {} turns: use --max-length, fewer "
            "--turns, or a model with a longer context",
            wanted.path, request.context_length, n_turns));
    return length;
}

longbench::TwoPartPrompt cut_prompt(const SampleRequest& request, const Record& record, const Wanted& wanted,
                                    const std::vector<Turn>& turns) {
    std::string before = python_format(wanted.set.before, [&](std::string_view) {
        return wanted.in_conversation ? question_for(record, turns[0].input) : turns[0].input;
    });
    const char* field = record.has_value("context") ? "context" : "input";
    std::string question =
        wanted.in_conversation ? "\n\n" + text_of_turn(record, wanted.set.first_turn, turns[0]) : std::string();
    return longbench::cut_in_the_middle(request, {before + python_text_of(record.at(field)), std::move(question)},
                                        max_length_of(request, wanted, turns), longbench::Halves::decoded_apart);
}

std::string subset_of(const Wanted& wanted, const Turn& turn, size_t number) {
    const std::string part = turn.task.empty() ? "" : "/" + turn.task;
    return std::string(wanted.set.name) + part +
           (wanted.in_conversation ? fmt::format("/turn {}", number + 1) : std::string());
}

void add_samples(const SampleRequest& request, std::string_view line, int number, const Wanted& wanted,
                 std::vector<TaskSample>& samples) {
    const Record record(line, fmt::format("{}:{}", wanted.path, number),
                        R"({"context": "…", "multi_turns": [{"input": "…", "answer": "…"}]})");
    const auto turns = turns_of(record, wanted);
    const auto prompt = cut_prompt(request, record, wanted, turns);
    std::string conversation = prompt.question;
    const std::string stem = utf8_lossy(std::filesystem::path(wanted.path).stem().string());
    for (size_t i = 0; i < turns.size(); ++i) {
        const Turn& turn = turns[i];
        if (wanted.in_conversation && i > 0)
            conversation += turns[i - 1].answer + "\n\n" + text_of_turn(record, wanted.set.later_turn, turn);
        samples.push_back(
            {.id = fmt::format("{}-{}-{}", stem, number, i + 1),
             .number = static_cast<int>((number - 1) * most_turns + static_cast<int64_t>(i)),
             .context = prompt.context,
             .question = wanted.in_conversation ? conversation : text_of_turn(record, wanted.set.request, turn),
             .answers = turn.shown,
             .subset = subset_of(wanted, turn, i),
             .separator = "",
             .n_new = longbench::n_new_of(request, turn.answering.n_new),
             .scorer = scbench::scorer_named(turn.answering.metric, turn.labels,
                                             wanted.splits_texts ? "scbench" : "scbench with whole answers"),
             .applies_template = !wanted.in_conversation});
    }
}

/// Returns the samples "<file>-<line>-<turn>", in the order of the file.
std::vector<TaskSample> make_samples(const SampleRequest& request) {
    const auto& values = request.options.values;
    const std::string& path = values.text("file");
    if (path.empty())
        throw UsageError(
            "the task scbench needs SCBench's data: fetch a file such as data/scbench_kv.jsonl of the Hugging Face "
            "dataset microsoft/SCBench, put it anywhere, and name it with --file");
    const std::string& text = request.options.files.at("file");
    refuse_other_benchmark(text, path, request.task.name);
    const std::string& subset = values.text("subset");
    const Wanted wanted{.set = subset.empty()
                                   ? scbench::set_named(utf8_lossy(std::filesystem::path(path).stem().string()), path)
                                   : scbench::set_named(subset, "--subset"),
                        .in_conversation = values.text("mode") == "multi-turn",
                        .splits_texts = values.text("score_as") == "upstream",
                        .n_turns = values.integer("turns"),
                        .path = path};
    const auto most = values.automatic_integer("samples");
    std::vector<TaskSample> samples;
    for_each_line_with_text(text, [&](std::string_view line, int number) {
        if (most && number > *most) return false;
        add_unless_unusable(request, [&] { add_samples(request, line, number, wanted, samples); });
        return true;
    });
    require_samples(request, samples, path + ": expected one JSON object per line, found no line with text");
    return samples;
}

std::string names_of_sets() {
    std::string names;
    for (const Set& set : scbench::sets()) names += fmt::format("{}{}", names.empty() ? "" : ", ", set.name);
    return names;
}

}  // namespace
}  // namespace scbench_file

Task scbench_task() {
    using namespace scbench_file;
    using namespace policies;
    return {
        .name = "scbench",
        .title = "SCBench: several questions about one context, in a conversation or apart",
        .citation =
            "Li et al., SCBench: A KV Cache-Centric Analysis of Long-Context Methods, ICLR 2025, arXiv:2412.10319; "
            "prompts and scores of the folder scbench of github.com/microsoft/MInference at commit fb56c91. Data: "
            "files "
            "data/scbench_*.jsonl of the Hugging Face dataset microsoft/SCBench (MIT). Layout: one JSON object per "
            "line: "
            "context, and multi_turns, a list of objects with input, answer and, by set, options or task",
        .parameters = {file_parameter("file", "One of SCBench's .jsonl files"),
                       text_parameter("subset", "",
                                      "Set of the file, if the file's name is not the set's. Sets: " + names_of_sets()),
                       choice_parameter(
                           "mode", {"multi-turn", "multi-request"}, "multi-turn",
                           "multi-turn: a question follows the earlier questions and their right answers, without "
                           "chat template; multi-request: each question alone follows the context"),
                       integer_parameter("turns", 5, {.low = 1, .high = static_cast<double>(most_turns)},
                                         "Largest number of questions per context"),
                       automatic_integer_parameter("samples", "all lines", {.low = 1, .high = 100000},
                                                   "Number of contexts, from the first line on"),
                       automatic_integer_parameter(
                           "max_length",
                           "the model's context minus the answers of all turns (multi-request: also minus "
                           "1000)",
                           {.low = 2},
                           "Largest number of tokens of the context (multi-turn: with the first question); "
                           "the middle of a longer context is removed"),
                       choice_parameter(
                           "score_as", {"upstream", "whole"}, "upstream",
                           "upstream: in vt, qa_chn and many_shot, a text as answer is a list of its characters, as "
                           "in SCBench's code; whole: it is one answer")},
        .needs_file = true,
        .n_new = n_answer_tokens,
        .scorer = scbench::scorer_named("kv_retrieval", {{""}, {}}, "scbench"),
        .make_samples = make_samples};
}

}  // namespace kvscope::engine
