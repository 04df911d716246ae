#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "common/find_phrases.h"
#include "common/split.h"
#include "common/utf8.h"
#include "engine/common/engine_error.h"
#include "engine/tasks/api/benchmark_files.h"
#include "engine/tasks/api/record.h"
#include "engine/tasks/api/sample_line.h"
#include "engine/tasks/longbench/middle_cut.h"
#include "engine/tasks/longbench/python_text.h"
#include "engine/tasks/longbench/scorers.h"
#include "engine/tasks/longbench/sets.h"

namespace kvscope::engine {
namespace longbench_file {
namespace {

using longbench::Set;

constexpr std::string_view ending_of_e = "_e";  // of LongBench-E's files and sets
constexpr std::pair<std::string_view, std::string_view> labels[] = {{"retrieval_score", "Paragraph "},
                                                                    {"retrieval_zh_score", "段落"}};
constexpr std::string_view every_set = "all", every_set_of_e = "all_e";

struct File {
    std::string shown, stem;
    std::string_view text;
    int place = 0;  ///< in the order of all sets, which fixes the numbers of samples
};

std::string_view without_ending(std::string_view name) {
    return name.ends_with(ending_of_e) ? name.substr(0, name.size() - ending_of_e.size()) : name;
}

std::vector<std::string> names_in(const std::string& list) {
    const auto names = split(list, ',');
    return {names.begin(), names.end()};
}

/// Refuses a set whose scores need files that the user did not name.
void require_files(const Set& set, bool can_cut, const std::string& place) {
    if (set.needs_cuts() && !can_cut)
        throw UsageError(fmt::format(
            "{}: the scores of {} depend on the words that jieba finds: fetch the Python package jieba 0.42.1, "
            "and name its files dict.txt with --dictionary and finalseg/prob_emit.py with --emissions",
            place, set.name));
}

/// Returns the names of the wanted sets, such as "qasper" or "qasper_e".
/// @param can_cut whether the sets that need the words of Chinese text are among all sets
std::vector<std::string> wanted_names(const std::string& list, bool can_cut) {
    std::vector<std::string> wanted;
    for (const std::string& name : names_in(list)) {
        if (name == every_set || name == every_set_of_e) {
            for (const Set& set : longbench::sets())
                if (can_cut || !set.needs_cuts())
                    wanted.push_back(std::string(set.name) + std::string(name == every_set ? "" : ending_of_e));
            continue;
        }
        require_files(longbench::set_named(without_ending(name), "--subsets"), can_cut, "--subsets");
        wanted.push_back(name);
    }
    return wanted;
}

bool is_wanted(const std::vector<std::string>& wanted, std::string_view name) {
    return std::ranges::find(wanted, name) != wanted.end();
}

/// Returns the file, or the wanted files of the folder, that the user named.
std::vector<File> files_of(const SampleRequest& request, const std::vector<std::string>& wanted) {
    const auto& files = request.options.files;
    const std::string path = request.options.values.text("file");
    if (const auto one = files.find("file"); one != files.end())
        return {{path, utf8_lossy(std::filesystem::path(path).stem().string()), one->second}};
    std::vector<File> found;
    for (size_t i = 0; i < longbench::sets().size(); ++i) {
        for (const bool is_e : {false, true}) {
            const std::string stem = std::string(longbench::sets()[i].name) + std::string(is_e ? ending_of_e : "");
            const auto file = files.find("file/" + stem + ".jsonl");
            if (file == files.end() || !is_wanted(wanted, stem)) continue;
            found.push_back(
                {fmt::format("{}/{}.jsonl", path, stem), stem, file->second, static_cast<int>(2 * i + is_e)});
        }
    }
    for (const std::string& name : names_in(request.options.values.text("subsets")))
        if (name != every_set && name != every_set_of_e && std::ranges::find(found, name, &File::stem) == found.end())
            throw UsageError(fmt::format("--subsets {}: {} contains no file {}.jsonl", name, path, name));
    if (found.empty())
        throw UsageError(fmt::format(
            "{}: expected files such as narrativeqa.jsonl (with --subsets all_e, qasper_e.jsonl), found none: "
            "name the folder data of LongBench's data.zip",
            path));
    return found;
}

std::string_view length_bucket(int64_t length) { return length < 4000 ? "0-4k" : length < 8000 ? "4-8k" : "8k+"; }

void require_answers_of_set(const Set& set, const Record& record, const std::vector<std::string>& answers) {
    for (const std::string& answer : answers)
        for (const auto& [metric, label] : labels)
            if (set.metric == metric && !longbench::labelled_number(answer, label))
                record.refuse(fmt::format("answers such as \"{}3\"", label), answer);
}

/// Settings of all samples.
struct Wanted {
    std::vector<std::string> names;                   ///< of sets
    std::shared_ptr<const longbench::WordCuts> cuts;  ///< null without jieba's files
};

/// @returns nullopt for a record of a set that is not wanted
std::optional<TaskSample> sample_of(const SampleRequest& request, const File& file, std::string_view line, int number,
                                    const Wanted& wanted) {
    const Record record(line, fmt::format("{}:{}", file.shown, number),
                        R"({"input": "…", "context": "…", "answers": ["…"], "dataset": "qasper"})");
    const std::string& dataset = record.filled_text("dataset");
    const Set& set = longbench::set_named(without_ending(dataset), record.place());
    const bool is_e = dataset.ends_with(ending_of_e) || file.stem.ends_with(ending_of_e);
    const std::string name = std::string(set.name) + std::string(is_e ? ending_of_e : "");
    const bool has_all = request.options.values.is_default("subsets") && request.options.files.contains("file");
    if (!has_all && !is_wanted(wanted.names, name)) return std::nullopt;
    require_files(set, wanted.cuts != nullptr, record.place());

    TaskSample sample;
    sample.answers = record.texts("answers");
    require_answers_of_set(set, record, sample.answers);
    longbench::ScoreInputs inputs{.cuts = wanted.cuts};
    if (set.has_classes()) inputs.classes = record.texts("all_classes");
    if (request.options.values.text("score_as") == "kvpress" && !is_e) inputs.scored_as = longbench::ScoredAs::kvpress;
    sample.scorer = set.scorer(std::move(inputs));
    sample.id = fmt::format("{}-{}", file.stem, number);
    const auto n_places = request.options.files.contains("file") ? 1 : 2 * static_cast<int>(longbench::sets().size());
    sample.number = (number - 1) * n_places + file.place;
    sample.subset = name;
    if (is_e) {
        const auto& length = record.at("length");
        if (!length.is_number_integer()) record.refuse("a whole number as \"length\"", length);
        sample.subset += fmt::format("/{}", length_bucket(length.get<int64_t>()));
    }
    constexpr std::string_view place_of_context = "{context}";
    const size_t at = set.format.find(place_of_context);
    std::string question(set.format.substr(at + place_of_context.size()));
    longbench::replace_all(question, "{input}", record.text("input"));
    sample.n_new = longbench::n_new_of(request, set.n_new);
    auto prompt = longbench::cut_in_the_middle(
        request, {std::string(set.format.substr(0, at)) + record.filled_text("context"), std::move(question)},
        longbench::max_length_of(request, sample.n_new), longbench::Halves::decoded_apart);
    sample.context = std::move(prompt.context);
    sample.question = std::move(prompt.question);
    // An answer that is a number of paragraphs has no place, and other numbers equal it.
    if (set.metric != "count_score") sample.spans = find_phrases(sample.context, sample.answers, at);
    sample.separator = "";
    sample.applies_template = set.style == longbench::PromptStyle::chat;
    if (set.ends_at_line_feed()) sample.end_ids = {request.tokenizer.encode("\n", false, true, request.stop).back()};
    return sample;
}

/// Returns the samples "<file>-<line>", ordered by line, then by set.
std::vector<TaskSample> make_samples(const SampleRequest& request) {
    const auto& values = request.options.values;
    if (values.text("file").empty())
        throw UsageError(
            "the task longbench needs LongBench's data: fetch data.zip of the Hugging Face dataset THUDM/LongBench, "
            "unpack it anywhere, and name its folder data, or one of the .jsonl files, with --file");
    const auto& texts = request.options.files;
    Wanted wanted;
    if (texts.contains("dictionary") && texts.contains("emissions"))
        wanted.cuts = std::make_shared<longbench::WordCuts>(texts.at("dictionary"), texts.at("emissions"));
    wanted.names = wanted_names(values.text("subsets"), wanted.cuts != nullptr);
    const auto most = values.automatic_integer("samples");
    std::vector<TaskSample> samples;
    const auto files = files_of(request, wanted.names);
    for (const File& file : files) {
        refuse_other_benchmark(file.text, file.shown, request.task.name);
        for_each_line_with_text(file.text, [&](std::string_view line, int number) {
            if (most && number > *most) return false;
            add_unless_unusable(request, [&] {
                if (auto sample = sample_of(request, file, line, number, wanted)) samples.push_back(std::move(*sample));
            });
            return true;
        });
    }
    require_samples(request, samples,
                    fmt::format("{}: found no sample of the sets {}", values.text("file"), values.text("subsets")));
    std::ranges::sort(samples, {}, &TaskSample::number);
    return samples;
}

std::string names_of_sets() {
    std::string names;
    for (const Set& set : longbench::sets()) names += fmt::format("{}{}", names.empty() ? "" : ", ", set.name);
    return names;
}

}  // namespace
}  // namespace longbench_file

Task longbench_task() {
    using namespace longbench_file;
    using namespace policies;
    return {
        .name = "longbench",
        .title = "LongBench and LongBench-E: 21 sets of questions, summaries, classification, retrieval and code",
        .citation =
            "Bai et al., LongBench: A Bilingual, Multitask Benchmark for Long Context Understanding, ACL 2024, "
            "arXiv:2308.14508. Data: file data.zip of the Hugging Face dataset THUDM/LongBench (code and prompts: MIT; "
            "each set has the licence of its source). Layout: one file per set, such as narrativeqa.jsonl and "
            "qasper_e.jsonl, with one JSON object per line: input, context, answers, length, dataset, language, "
            "all_classes, _id",
        .parameters = {file_parameter("file", "LongBench's folder data, or one of its .jsonl files"),
                       text_parameter("subsets", std::string(every_set),
                                      "Sets of LongBench, such as qasper or (LongBench-E) qasper_e; all_e for all sets "
                                      "of LongBench-E. Sets: " +
                                          names_of_sets()),
                       file_parameter("dictionary", "jieba's dict.txt, for multifieldqa_zh, dureader and vcsum"),
                       file_parameter("emissions", "jieba's finalseg/prob_emit.py, needed with --dictionary"),
                       automatic_integer_parameter("samples", "all lines", {.low = 1, .high = 100000},
                                                   "Number of samples per file, from the first line on"),
                       longbench::max_length_parameter(),
                       choice_parameter(
                           "score_as", {"upstream", "kvpress"}, "upstream",
                           "Rules of the scores: LongBench's, or kvpress's, which omits white space before "
                           "the first line for trec, triviaqa, samsum and lsht, not for LongBench-E")},
        .needs_file = true,
        .reads_folder = true,
        .n_new = 512,
        .scorer = longbench::sets().front().scorer({}),
        .make_samples = make_samples};
}

}  // namespace kvscope::engine
