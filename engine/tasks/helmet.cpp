#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <compare>
#include <filesystem>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "common/bounded_json.h"
#include "common/sha256.h"
#include "common/utf8.h"
#include "engine/common/engine_error.h"
#include "engine/tasks/api/benchmark_files.h"
#include "engine/tasks/api/python_format.h"
#include "engine/tasks/api/record.h"
#include "engine/tasks/api/sample_line.h"
#include "engine/tasks/helmet/permutation.h"
#include "engine/tasks/helmet/scorers.h"
#include "engine/tasks/helmet/sets.h"
#include "engine/tasks/longbench/middle_cut.h"
#include "engine/tasks/ruler/python_random.h"

namespace kvscope::engine {
namespace helmet_file {
namespace {

using helmet::Kind;
using helmet::Set;

constexpr int64_t n_answer_tokens = 100;
constexpr std::string_view metric_of_set = "set";

/// The value by which records are the same question, ordered as Python sorts a column of numbers or of texts.
struct Key {
    int64_t number = 0;  ///< 0 for texts
    std::string text{};  ///< str(value)

    [[nodiscard]] auto operator<=>(const Key&) const = default;
};

Key key_of(const Record& record, const char* field) {
    const auto& value = record.at(field);
    if (!value.is_string() && !value.is_number_integer())
        record.refuse(fmt::format("a text or a whole number as \"{}\"", field), value);
    return {value.is_string() ? 0 : value.get<int64_t>(), python_text_of(value)};
}

/// Returns a seed that depends on the question (data.py).
uint64_t seed_of(const Key& key) {
    const std::string digits = sha256_of(key.text);
    constexpr size_t n_digits = 8;
    uint32_t number = 0;
    std::from_chars(digits.data() + digits.size() - n_digits, digits.data() + digits.size(), number, 16);
    return number & 0x7FFFFFFFU;
}

struct Line {
    std::string_view text;
    int number = 0;
    Key key{};  ///< of sets with demonstrations
};

struct File {
    std::string path;
    std::string_view text;
};

/// What all samples share.
struct Wanted {
    const Set& set;
    std::string metric;
    int64_t shots = 0;
    const char* key_field = "";
    std::vector<std::pair<Key, Record>> demonstrations{};
};

constexpr const char* example_of(Kind kind) {
    if (kind == Kind::documents) return R"({"question": "…", "answers": ["…"], "ctxs": [{"title": "…", "text": "…"}]})";
    if (kind == Kind::ranking) return R"({"qid": "…", "query": "…", "ctxs": [{"id": "3", "text": "…", "label": 1}]})";
    if (kind == Kind::json) return R"({"context": "…", "question": "…", "answer": "…", "num_kvs": 9, "demos": []})";
    return R"({"context": "…", "query": "…", "outputs": ["…"]})";
}

const char* key_field_of(const Set& set, const File& file) {
    if (set.kind == Kind::ranking) return "qid";
    const char* field = "question";
    for_each_line_with_text(file.text, [&](std::string_view line, int) {
        const auto object = bounded_json::parse_or_discard(line);
        if (object.is_object() && object.contains("id")) field = "id";
        return !object.is_object();
    });
    return field;
}

/// Whether the question is about a page that few people read, or its set does not record that.
bool is_rare(const Set& set, const Record& record) {
    if (!set.has_popularity()) return true;
    constexpr double largest_decimal_logarithm = 3;
    const auto& value = record.at("s_pop");
    if (!value.is_number() || value.get<double>() <= 0) record.refuse("a number above 0 as \"s_pop\"", value);
    return std::log10(value.get<double>()) < largest_decimal_logarithm;
}

std::string field_of(const Record& record, const nlohmann::json& object, const char* field) {
    if (!object.is_object() || !object.contains(field))
        record.refuse(fmt::format("\"{}\" in each element of \"ctxs\"", field), object);
    return python_text_of(object[field]);
}

const nlohmann::json& documents_of(const Record& record) {
    const auto& documents = record.at("ctxs");
    if (!documents.is_array()) record.refuse("a list as \"ctxs\"", documents);
    return documents;
}

std::string text_of_documents(const Record& record, std::string_view format) {
    std::string text;
    for (const auto& document : documents_of(record)) {
        if (!text.empty()) text += "\n\n";
        text += python_format(
            format, [&](std::string_view name) { return field_of(record, document, std::string(name).c_str()); });
    }
    return text;
}

std::vector<std::pair<std::string, int64_t>> labels_of(const Record& record) {
    std::vector<std::pair<std::string, int64_t>> labels;
    for (const auto& document : documents_of(record)) {
        const std::string id = field_of(record, document, "id");
        const auto label = document.find("label");
        if (label == document.end() || !label->is_number_integer())
            record.refuse("a whole number as \"label\" in each element of \"ctxs\"", document);
        labels.emplace_back(id, label->get<int64_t>());
    }
    return labels;
}

std::string ranking_of(std::vector<std::pair<std::string, int64_t>> labels) {
    std::ranges::stable_sort(labels, std::greater(), &std::pair<std::string, int64_t>::second);
    std::string ranking;
    for (const auto& [id, label] : labels) ranking += (ranking.empty() ? "" : " > ") + id;
    return ranking;
}

std::string format_of_document(Kind kind, const Record& record) {
    if (kind == Kind::documents) return "Document (Title: {title}): {text}";
    const auto& documents = documents_of(record);
    const bool has_title = !documents.empty() && documents[0].is_object() && documents[0].contains("title");
    return has_title ? "[ID: {id}] Document (Title: {title}): {text}" : "[ID: {id}] Document: {text}";
}

std::string text_of_demonstration(Kind kind, const Record& record, const std::string& format) {
    const std::string documents = text_of_documents(record, format);
    if (kind == Kind::documents)
        return fmt::format("{}\n\nQuestion: {}\nAnswer: {}\n\n", documents, record.text("question"),
                           record.texts("answers").front());
    return fmt::format("{}\n\nQuery: {}\nRanking: {}\n\n", documents, record.text("query"),
                       ranking_of(labels_of(record)));
}

/// Returns different demonstrations for each question (load_qa and load_msmarco_rerank in data.py).
std::string demonstrations_of(const Wanted& wanted, const Record& record, const Key& key, const std::string& format) {
    if (wanted.shots == 0) return {};
    // The files of popqa and msmarco contain the tested questions.
    const bool omits_own = wanted.set.has_popularity() || wanted.set.kind == Kind::ranking;
    std::vector<size_t> others;
    for (size_t i = 0; i < wanted.demonstrations.size(); ++i)
        if (!omits_own || wanted.demonstrations[i].first != key) others.push_back(i);
    std::set<Key> used;
    std::string text;
    for (const size_t place : helmet::permutation(others.size(), seed_of(key))) {
        if (static_cast<int64_t>(used.size()) == wanted.shots) break;
        const auto& [other, demonstration] = wanted.demonstrations[others[place]];
        if (used.insert(other).second) text += text_of_demonstration(wanted.set.kind, demonstration, format);
    }
    if (static_cast<int64_t>(used.size()) < wanted.shots)
        throw UsageError(fmt::format("{}: --shots {} needs as many other questions in the file of --demos, found {}",
                                     record.place(), wanted.shots, used.size()));
    return text;
}

std::string demonstrations_in(const Record& record, int64_t shots) {
    const auto& pairs = record.at("demos");
    if (!pairs.is_array()) record.refuse("a list as \"demos\"", pairs);
    std::string text;
    for (size_t i = 0; i < pairs.size() && static_cast<int64_t>(i) < shots; ++i) {
        if (!pairs[i].is_array() || pairs[i].size() != 2)
            record.refuse("pairs of key and value as \"demos\"", pairs[i]);
        text += fmt::format("{}Key: {}\nCorresponding value: {}", i > 0 ? "\n\n" : "", python_text_of(pairs[i][0]),
                            python_text_of(pairs[i][1]));
    }
    return shots > 0 ? text + "\n\n" : text;
}

std::vector<std::string> answers_in(const Record& record, const char* field) {
    if (record.at(field).is_string()) return {record.text(field)};
    return record.texts(field);
}

/// Removes the end of the context of a prompt that is too long (tokenize() in model_utils.py).
void cut_context(const SampleRequest& request, const Record& record, const std::string& before, std::string& context,
                 const std::string& after, int64_t n_new) {
    const auto n_tokens = request.tokenizer.encode(before + context + after, true, true, request.stop).size();
    const int64_t most =
        request.options.values.automatic_integer("max_length").value_or(request.context_length) - n_new;
    const int64_t n_removed = static_cast<int64_t>(n_tokens) - most;
    if (n_removed <= 0) return;
    const auto tokens = request.tokenizer.encode_with_ends(context, true, true, request.stop);
    const auto n = static_cast<int64_t>(tokens.ids.size());
    if (n_removed > n)
        throw UsageError(fmt::format(
            "{}: expected at most {} tokens of prompt, found {} without the context, and {} answer tokens: use a "
            "larger --max-length, fewer --shots, or a model with a longer context",
            record.place(), most, most + n_removed - n, n_new));
    const auto first_removed = static_cast<size_t>(n - n_removed);
    size_t end = first_removed == 0 ? 0 : tokens.ends[first_removed - 1];
    // The last kept token contains a part of the character with which the first removed token begins.
    const std::string piece = request.tokenizer.piece(tokens.ids[first_removed], request.stop);
    const auto continues = [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; };
    if (!piece.empty() && continues(piece.front()) && end > 0) do
            --end;
        while (end > 0 && continues(context[end]));
    context.resize(end);
}

TaskSample sample_of(const SampleRequest& request, const File& file, const Line& line, const Wanted& wanted) {
    const Set& set = wanted.set;
    const Record record(line.text, fmt::format("{}:{}", file.path, line.number), example_of(set.kind));
    std::string context, demonstrations, question;
    TaskSample sample;
    switch (set.kind) {
        case Kind::documents:
        case Kind::ranking: {
            const std::string format = format_of_document(set.kind, record);
            context = text_of_documents(record, format);
            demonstrations = demonstrations_of(wanted, record, line.key, format);
            question = record.text(set.kind == Kind::documents ? "question" : "query");
            sample.answers =
                set.kind == Kind::documents ? record.texts("answers") : std::vector{ranking_of(labels_of(record))};
            break;
        }
        case Kind::json:
            context = record.filled_text("context");
            demonstrations = demonstrations_in(record, wanted.shots);
            question = record.text("question");
            sample.answers = answers_in(record, "answer");
            break;
        case Kind::ruler:
            context = record.filled_text("context");
            if (record.has_value("query") || record.has_value("question"))
                question = record.text(record.has_value("query") ? "query" : "question");
            if (set.has_text_metric())
                sample.answers = answers_in(record, record.has_value("answer") ? "answer" : "outputs");
            else
                sample.answers = record.texts(record.has_value("answer") ? "answer" : "outputs");
    }
    const auto value_of = [&](std::string_view name) -> std::string {
        if (name == "demos") return demonstrations;
        if (name == "question") return question;
        const std::string field(name);
        if (name == "example") return record.has_value("example") ? record.text("example") + "\n\n" : "";
        return python_text_of(record.at(field.c_str()));
    };
    const std::string answer_begin = python_format(set.answer_begin, value_of);
    const std::string before = python_format(set.instruction, value_of);
    sample.question = python_format(set.question, value_of) + answer_begin;
    sample.n_new = longbench::n_new_of(request, set.n_new);
    cut_context(request, record, before, context, sample.question, sample.n_new);
    sample.context = before + context;
    sample.separator = "";
    sample.id = fmt::format("{}-{}", utf8_lossy(std::filesystem::path(file.path).stem().string()), line.number);
    sample.number = line.number - 1;
    sample.subset = set.name;
    if (set.kind == Kind::ranking)
        sample.scorer = helmet::ndcg_at_10(labels_of(record), answer_begin);
    else if (set.has_text_metric())
        sample.scorer = helmet::text_scorer(wanted.metric, answer_begin,
                                            set.kind == Kind::json ? "corresponding value:" : "Answer:");
    else
        sample.scorer = helmet::ruler_recall(answer_begin);
    return sample;
}

/// Reads the key of each line, and leaves out broken lines and questions that the set excludes.
std::vector<Line> lines_with_keys(const SampleRequest& request, const File& file, const Wanted& wanted) {
    std::vector<Line> lines;
    for_each_line_with_text(file.text, [&](std::string_view text, int number) {
        add_unless_unusable(request, [&] {
            const Record record(text, fmt::format("{}:{}", file.path, number), example_of(wanted.set.kind));
            Key key = key_of(record, wanted.key_field);
            if (is_rare(wanted.set, record)) lines.push_back({text, number, std::move(key)});
        });
        return true;
    });
    return lines;
}

/// Returns the lines that HELMET selects, in the order of the file.
std::vector<Line> selected_lines(const SampleRequest& request, const File& file, const Wanted& wanted) {
    const auto& values = request.options.values;
    const auto most = static_cast<size_t>(values.integer("samples"));
    const uint64_t seed = values.seed("seed");
    std::vector<Line> lines;
    if (!wanted.set.needs_demonstrations()) {
        for_each_line_with_text(file.text, [&](std::string_view text, int number) {
            lines.push_back({text, number});
            return true;
        });
        auto order = helmet::permutation(lines.size(), seed);
        order.resize(std::min(most, order.size()));
        std::ranges::sort(order);
        std::vector<Line> selected;
        for (const size_t place : order) selected.push_back(lines[place]);
        return selected;
    }
    lines = lines_with_keys(request, file, wanted);
    std::set<Key> keys;
    for (const Line& line : lines) keys.insert(line.key);
    const std::vector<Key> sorted(keys.begin(), keys.end());
    std::set<Key> selected;
    ruler::PythonRandom random(seed);
    for (const size_t place :
         random.sample(sorted.size(), std::min(most, sorted.size())).value_or(std::vector<size_t>()))
        selected.insert(sorted[place]);
    std::erase_if(lines, [&](const Line& line) { return !selected.contains(line.key); });
    return lines;
}

std::vector<std::pair<Key, Record>> read_demonstrations(const SampleRequest& request, const Wanted& wanted) {
    const auto& files = request.options.files;
    const std::string path = request.options.values.text("demos");
    const auto found = files.find("demos");
    if (found == files.end())
        throw UsageError(fmt::format(
            "{} needs a file of demonstrations: name it with --demos, such as {} of HELMET's data.tar.gz, or use "
            "--shots 0",
            wanted.set.name,
            wanted.set.kind == Kind::ranking ? "msmarco/test_reranking_data_k10_dep3.jsonl"
                                             : "kilt/nq-train-multikilt_1000_k3_dep6.jsonl"));
    std::vector<std::pair<Key, Record>> demonstrations;
    for_each_line_with_text(found->second, [&](std::string_view text, int number) {
        Record record(text, fmt::format("{}:{}", path, number), example_of(wanted.set.kind));
        if (is_rare(wanted.set, record)) {
            Key key = key_of(record, wanted.key_field);
            demonstrations.emplace_back(std::move(key), std::move(record));
        }
        return true;
    });
    return demonstrations;
}

/// Returns the samples "<file>-<line>", in the order of the file.
std::vector<TaskSample> make_samples(const SampleRequest& request) {
    const auto& values = request.options.values;
    const std::string path = values.text("file");
    if (path.empty())
        throw UsageError(
            "the task helmet needs HELMET's data: fetch data.tar.gz of the Hugging Face dataset princeton-nlp/HELMET, "
            "unpack it anywhere, and name one of its .jsonl files with --file");
    const File file{path, request.options.files.at("file")};
    const std::string& subset = values.text("subset");
    const Set& set = subset.empty() ? helmet::set_of_file(path) : helmet::set_named(subset);
    refuse_other_benchmark(file.text, path, request.task.name);
    Wanted wanted{.set = set, .metric = values.text("metric"), .shots = values.integer("shots")};
    if (wanted.metric == metric_of_set) {
        wanted.metric = helmet::text_metrics().front();
    } else if (!set.has_text_metric()) {
        throw UsageError(fmt::format("--metric {}: answers to {} are scored with {} only: omit --metric", wanted.metric,
                                     set.name, set.kind == Kind::ranking ? "NDCG@10" : "ruler_recall"));
    }
    if (set.needs_demonstrations()) wanted.key_field = key_field_of(set, file);
    if (set.needs_demonstrations() && wanted.shots > 0) wanted.demonstrations = read_demonstrations(request, wanted);
    const auto lines = selected_lines(request, file, wanted);
    if (set.kind == Kind::ranking && wanted.demonstrations.size() > 2 * lines.size())
        std::erase_if(wanted.demonstrations, [&](const auto& demonstration) {
            return std::ranges::find(lines, demonstration.first, &Line::key) != lines.end();
        });
    std::vector<TaskSample> samples;
    for (const Line& line : lines)
        add_unless_unusable(request, [&] { samples.push_back(sample_of(request, file, line, wanted)); });
    require_samples(request, samples, path + ": expected one JSON object per line, found no line with text");
    return samples;
}

std::string names_of_sets() {
    std::string names;
    for (const Set& set : helmet::sets()) names += fmt::format("{}{}", names.empty() ? "" : ", ", set.name);
    return names;
}

policies::Parameter seed_of_helmet() {
    auto parameter = policies::seed_parameter("seed", "Seed of the choice of samples");
    parameter.fallback = std::string("42");
    return parameter;
}

std::vector<std::string> choices_of_metric() {
    std::vector<std::string> choices{std::string(metric_of_set)};
    for (const std::string_view metric : helmet::text_metrics()) choices.emplace_back(metric);
    return choices;
}

}  // namespace
}  // namespace helmet_file

Task helmet_task() {
    using namespace helmet_file;
    using namespace policies;
    return {
        .name = "helmet",
        .title = "HELMET without judges: questions about documents, ranking, JSON keys and RULER's tasks",
        .citation =
            "Yen et al., HELMET: How to Evaluate Long-Context Language Models Effectively and Thoroughly, ICLR 2025, "
            "arXiv:2410.02694; prompts, selection and scores of github.com/princeton-nlp/HELMET at commit 4526dfb. "
            "Data: file data.tar.gz of the Hugging Face dataset princeton-nlp/HELMET (code: MIT; each set has the "
            "licence of its source). Layout: .jsonl files with one JSON object per line. kilt: question, answers, "
            "ctxs (title, text), and id and s_pop for popqa; msmarco: qid, query, ctxs (id, text, label); json_kv: "
            "context, question, answer, num_kvs, demos; ruler: context, query or question, outputs",
        .parameters = {file_parameter("file", "One of HELMET's .jsonl files"),
                       file_parameter("demos",
                                      "HELMET's file of demonstrations, for kilt (k3 in the name) and msmarco (k10)"),
                       text_parameter(
                           "subset", "",
                           "Set of the file, if the names of file and folder do not tell it. Sets: " + names_of_sets()),
                       integer_parameter("samples", 100, {.low = 1, .high = 100000},
                                         "Number of questions, chosen at random as in HELMET. A question of kilt and "
                                         "msmarco has several samples"),
                       integer_parameter("shots", 2, {.low = 0, .high = 100},
                                         "Number of demonstrations before the documents, or of example keys"),
                       seed_of_helmet(),
                       automatic_integer_parameter("max_length", "the model's context", {.low = 2},
                                                   "Largest number of tokens of prompt and answer; the end of a longer "
                                                   "context is removed"),
                       choice_parameter("metric", choices_of_metric(), std::string(metric_of_set),
                                        "Score of kilt, json_kv and ruler_qa; set: substring_exact_match")},
        .needs_file = true,
        .n_new = n_answer_tokens,
        .applies_template = false,
        .scorer = helmet::ruler_recall(""),
        .make_samples = make_samples};
}

}  // namespace kvscope::engine
