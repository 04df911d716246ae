#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "engine/common/engine_error.h"
#include "engine/tasks/api/benchmark_files.h"
#include "engine/tasks/api/python_literal.h"
#include "engine/tasks/api/record.h"
#include "engine/tasks/api/sample_line.h"
#include "engine/tasks/api/set_files.h"
#include "engine/tasks/longbench/middle_cut.h"
#include "engine/tasks/longbench/python_text.h"
#include "engine/tasks/loogle/scorers.h"

namespace kvscope::engine {
namespace loogle_file {
namespace {

enum class Kind { questions, masks, summary };

/// One of LooGLE's sets. The prompt is `before`, the input, `between`, the question and `after` (task2prompt.json).
struct Set {
    std::string_view name;
    Kind kind;
    int64_t n_new;  ///< largest number of answer tokens (task2maxlen.json)
    std::string_view before, between, after;
};

constexpr std::string_view before_questions = "Please answer the question based on the long texts below. \n";
constexpr std::string_view before_summary = "Please generate a summary of the below paper. \n";
constexpr std::string_view after_paper = "\n Summarization: ";
// The prompts contain the originals' errors of spelling.
constexpr Set sets[] = {
    {"shortdep_qa", Kind::questions, 300, before_questions, "\nQuestion: ", "\nAnswer: "},
    {"longdep_qa", Kind::questions, 500, before_questions, "\nQuestion: ", "\nAnswer: "},
    {"shortdep_cloze", Kind::masks, 50,
     "Please fill in the clozes based on the given long texts below. Each of the placeholder '<mask-n>' in the "
     "question "
     "could be an entity of Person, Location or Organiocation. The same masks represent the same entity. Output a json "
     "format answer, for example: {'<mask-0>': 'Bob', '<mask-1>': 'Gorrosion Magazine','<mask-2>': 'Bethel Horizon'}\n",
     "\n Question: ", " What are the masked entities? \nAnswer:"},
    {"longdep_summarization", Kind::summary, 500, before_summary, after_paper, ""},
    {"summarization", Kind::summary, 500, before_summary, after_paper, ""},  // a later name of the same set
};

std::vector<std::string_view> names_of_sets() {
    std::vector<std::string_view> names;
    for (const Set& set : sets) names.push_back(set.name);
    return names;
}

/// A score that the user can choose. Metrics of answers that can be partly right end in "_score".
struct Metric {
    std::string_view name, metric;
    double (*score)(std::string_view prediction, std::string_view answer);
};

constexpr Metric metrics[] = {
    {"rouge-1", "rouge_1_score", [](auto prediction, auto answer) { return loogle::rouge_n(prediction, answer, 1); }},
    {"rouge-2", "rouge_2_score", [](auto prediction, auto answer) { return loogle::rouge_n(prediction, answer, 2); }},
    {"rouge-l", "rouge_l_score", loogle::rouge_l},
    {"bleu1", "bleu1_score", [](auto prediction, auto answer) { return loogle::bleu(prediction, answer, 1); }},
    {"bleu4", "bleu4_score", [](auto prediction, auto answer) { return loogle::bleu(prediction, answer, 4); }}};

std::vector<std::string> names_of_metrics() {
    std::vector<std::string> names;
    for (const Metric& metric : metrics) names.emplace_back(metric.name);
    return names;
}

Scorer scorer_of(const Metric& metric) {
    return {std::string(metric.metric),
            [score = metric.score](std::string_view prediction, std::span<const std::string> answers) {
                return score(prediction, answers.front());
            },
            "loogle"};
}

/// Scores the names of masks; the answer is a JSON object.
Scorer scorer_of_masks(bool is_exact) {
    return {is_exact ? "exact_match_score" : "partial_match_score",
            [is_exact](std::string_view prediction, std::span<const std::string> answers) {
                const auto names = nlohmann::json::parse(answers.front());
                return is_exact ? loogle::exact_match(prediction, names) : loogle::partial_match(prediction, names);
            },
            "loogle"};
}

Scorer scorer_of(const SampleRequest& request, const Set& set) {
    const auto& values = request.options.values;
    if (set.kind == Kind::masks) return scorer_of_masks(values.text("match") == "exact");
    return scorer_of(*std::ranges::find(metrics, values.text("metric"), &Metric::name));
}

/// Returns the value, or the Python literal that a text stands for.
nlohmann::json read_literal(const nlohmann::json& value) {
    if (!value.is_string()) return value;
    return read_python_literal(value.get_ref<const std::string&>()).value_or(value);
}

/// A question about a text, as a JSON object with Q, A, S and type. Q is empty for a summary.
struct Document {
    std::string text;
    std::vector<nlohmann::json> questions;
};

/// Reads a record of LooGLE's repository (input, qa_pairs, output) or of the later data set, which has one record per
/// question (context, question, answer, evidence).
Document read_document(const Record& record, const Set& set) {
    if (record.has("context")) {
        nlohmann::json pair{{"Q", ""}, {"A", record.at("answer")}};
        if (set.kind != Kind::summary) pair["Q"] = record.filled_text("question");
        if (record.has("evidence")) pair["S"] = read_literal(record.at("evidence"));
        return {record.filled_text("context"), {pair}};
    }
    Document document{record.filled_text("input"), {}};
    if (set.kind == Kind::summary) {
        document.questions.push_back({{"Q", ""}, {"A", record.filled_text("output")}});
        return document;
    }
    auto pairs = read_literal(record.at("qa_pairs"));
    if (!pairs.is_array() || pairs.empty())
        record.refuse("a list of questions, or its Python literal, as \"qa_pairs\"", record.at("qa_pairs"));
    std::ranges::move(pairs, std::back_inserter(document.questions));
    return document;
}

/// Returns the answer; the names of masks as a JSON object.
std::string answer_of(const Record& pair, const Set& set) {
    if (set.kind != Kind::masks) return pair.filled_text("A");
    const auto names = read_literal(pair.at("A"));
    if (!names.is_object() || names.empty() ||
        !std::ranges::all_of(names, [](const auto& name) { return name.is_string(); }))
        pair.refuse("the names of masks, such as {\"<mask-0>\": \"Bob\"}, as \"A\"", pair.at("A"));
    return names.dump();
}

/// Returns the places of the evidence in the context. Evidence that the cut removed or changed has none.
std::vector<std::pair<size_t, size_t>> places_of_evidence(const Record& pair, const std::string& context) {
    std::vector<std::pair<size_t, size_t>> places;
    if (!pair.has_value("S")) return places;
    auto evidence = pair.at("S");
    if (evidence.is_string()) evidence = nlohmann::json::array({evidence});
    for (const auto& sentence : evidence)
        if (sentence.is_string())
            std::ranges::move(places_of(longbench::stripped(sentence.get_ref<const std::string&>()), context),
                              std::back_inserter(places));
    std::ranges::sort(places);
    return places;
}

TaskSample sample_of(const SampleRequest& request, const Set& set, const std::string& text, const Record& pair) {
    TaskSample sample;
    sample.subset = set.name;
    if (pair.has_value("type")) sample.subset += "/" + pair.text("type");
    sample.answers = {answer_of(pair, set)};
    sample.n_new = longbench::n_new_of(request, set.n_new);
    const std::string& question = set.kind == Kind::summary ? pair.text("Q") : pair.filled_text("Q");
    auto prompt = longbench::cut_in_the_middle(
        request, {fmt::format("{}{}", set.before, text), fmt::format("{}{}{}", set.between, question, set.after)},
        longbench::max_length_of(request, sample.n_new), longbench::Halves::decoded_apart);
    sample.context = std::move(prompt.context);
    sample.question = std::move(prompt.question);
    sample.spans = places_of_evidence(pair, sample.context);
    sample.separator = "";
    sample.scorer = scorer_of(request, set);
    return sample;
}

/// Adds one sample "<file>-<line>-<question>" for each question of a line.
/// @param number of the file's first question that is not yet added, from 1
void add_samples(const SampleRequest& request, const SetFile& file, std::string_view line, int line_number, int& number,
                 std::vector<TaskSample>& samples) {
    const Set& set = sets[file.set];
    const auto most = request.options.values.automatic_integer("samples");
    const std::string place = fmt::format("{}:{}", file.shown, line_number);
    const int number_of_line = number;
    add_unless_unusable(request, [&] {
        const Record record(line, place, R"({"input": "…", "qa_pairs": [{"Q": "…", "A": "…", "S": ["…"]}]})");
        const Document document = read_document(record, set);
        for (size_t i = 0; i < document.questions.size() && (!most || number <= *most); ++i, ++number) {
            add_unless_unusable(request, [&] {
                const Record pair(document.questions[i].dump(), fmt::format("{}, question {}", place, i + 1),
                                  R"({"Q": "…", "A": "…", "S": ["…"]})");
                TaskSample sample = sample_of(request, set, document.text, pair);
                sample.id = fmt::format("{}-{}-{}", file.stem, line_number, i + 1);
                sample.number = file.number_of_sample(number);
                samples.push_back(std::move(sample));
            });
        }
    });
    number = std::max(number, number_of_line + 1);  // a line that cannot be read counts as one question
}

std::vector<TaskSample> make_samples(const SampleRequest& request) {
    const auto& values = request.options.values;
    if (values.text("file").empty())
        throw UsageError(
            "the task loogle needs LooGLE's data: fetch the .jsonl files such as shortdep_qa.jsonl of the Hugging Face "
            "dataset bigai-nlco/LooGLE (or those in LooGLE-testdata of github.com/bigai-nlco/LooGLE), put them into "
            "any folder, and name the folder, or one file, with --file");
    const auto most = values.automatic_integer("samples");
    std::vector<TaskSample> samples;
    for (const SetFile& file : files_of_sets(request, names_of_sets())) {
        refuse_other_benchmark(file.text, file.shown, request.task.name);
        int number = 1;
        for_each_line_with_text(file.text, [&](std::string_view line, int line_number) {
            if (most && number > *most) return false;
            add_samples(request, file, line, line_number, number, samples);
            return true;
        });
    }
    require_samples(request, samples, values.text("file") + ": expected one JSON object per line, found none");
    std::ranges::sort(samples, {}, &TaskSample::number);
    return samples;
}

}  // namespace
}  // namespace loogle_file

Task loogle_task() {
    using namespace loogle_file;
    using namespace policies;
    return {
        .name = "loogle",
        .title = "LooGLE: questions, masked names and summaries of long documents, with evidence",
        .citation =
            "Li et al., LooGLE: Can Long-Context Language Models Understand Long Contexts?, ACL 2024, "
            "arXiv:2311.04939. "
            "Data: the .jsonl files of the Hugging Face dataset bigai-nlco/LooGLE (CC BY-SA 4.0; code and prompts: "
            "MIT). Layout: one file per set, with one JSON object per line: input, title, qa_pairs (a list of objects "
            "with Q, A, S and type, or the Python literal of such a list), output; or one object per question: "
            "context, "
            "question, answer, evidence. The middle of a long prompt is removed. Scores that need a model or WordNet "
            "(BERTScore, METEOR, GPT-4) are left out",
        .parameters = {file_parameter("file", "Folder of LooGLE's .jsonl files, or one file"),
                       subsets_parameter(names_of_sets()),
                       automatic_integer_parameter("samples", "all questions", {.low = 1, .high = 100000},
                                                   "Number of questions per file, from the first line on"),
                       longbench::max_length_parameter(),
                       choice_parameter("metric", names_of_metrics(), "rouge-l",
                                        "Score of answers and summaries: recall of ROUGE (package rouge), or BLEU of "
                                        "single words or of four words (NLTK)"),
                       choice_parameter(
                           "match", {"exact", "partial"}, "exact",
                           "Score of shortdep_cloze: share of the masks whose name is equal, or has a word "
                           "in common. LooGLE divides the sums over all questions instead")},
        .needs_file = true,
        .reads_folder = true,
        .n_new = 256,
        .applies_template = false,
        .scorer = scorer_of(*std::ranges::find(metrics, "rouge-l", &Metric::name)),
        .make_samples = make_samples};
}

}  // namespace kvscope::engine
