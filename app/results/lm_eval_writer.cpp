#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

#include "app/results/measures.h"
#include "app/results/names.h"
#include "app/results/python_list.h"
#include "app/results/written_results.h"
#include "common/hidden_question.h"
#include "common/json.h"
#include "common/sha256.h"

namespace kvscope::results {
namespace {

using Json = nlohmann::ordered_json;
using Rows = std::vector<const trace::ResultRow*>;

std::string dumped(const Json& json, int indent = -1) {
    return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

/// json.dumps() without indentation separates by ", " and ": ".
std::string dumped_line(const Json& json) {
    const std::string text = dumped(json);
    std::string line;
    bool in_string = false;
    for (size_t i = 0; i < text.size(); ++i) {
        line += text[i];
        if (in_string && text[i] == '\\')
            line += text[++i];
        else if (text[i] == '"')
            in_string = !in_string;
        else if (!in_string && (text[i] == ',' || text[i] == ':'))
            line += ' ';
    }
    return line;
}

/// The metrics of a sample: the score, and measures that kvscope recorded. lm-eval's tasks of RULER have one metric per
/// length, which is -1 for samples of other lengths.
using Metrics = std::vector<std::pair<std::string, double>>;

Metrics metrics_of(const trace::ResultRow& row, const std::set<int64_t>& ruler_lengths) {
    Metrics metrics;
    for (const int64_t length : ruler_lengths)
        metrics.emplace_back(std::to_string(length), row.length == length ? row.score : -1);
    if (ruler_lengths.empty() && std::isfinite(row.score))
        metrics.emplace_back(row.metric.empty() ? "score" : row.metric, row.score);
    for (const Measure& measure : measures)
        if (std::isfinite(row.*measure.member)) metrics.emplace_back(measure.name, row.*measure.member);
    return metrics;
}

/// Adds the mean of a metric and its standard error.
void add_mean(Json& entry, const std::string& name, const std::vector<double>& values, bool has_error) {
    const auto n = static_cast<double>(values.size());
    const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
    double squares = 0;
    for (const double value : values) squares += (value - mean) * (value - mean);
    entry[name + ",none"] = mean;
    if (has_error && values.size() > 1)
        entry[name + "_stderr,none"] = std::sqrt(squares / (n - 1)) / std::sqrt(n);
    else
        entry[name + "_stderr,none"] = "N/A";
}

struct TaskFile {
    std::string name;  ///< of the task in lm-eval
    Json samples = Json::array();
    std::map<std::string, std::vector<double>> values{};  ///< by metric
    std::vector<std::string> metrics{};                   ///< in order
    bool is_ruler = false;
    double seconds = 0;
};

Json document_of(const trace::ResultRow& row, const std::string& task, const std::string& question) {
    Json doc;
    doc["task"] = task;
    doc["subset"] = row.subset;
    doc["sample_id"] = row.sample_id;
    doc["question"] = question;
    doc["answers"] = answers_of(row);
    doc["length"] = row.length;
    doc["depth"] = std::isfinite(row.depth) ? Json(row.depth) : Json();
    doc["scored_as"] = row.scored_as;
    doc["sample_hash"] = row.sample_hash;
    doc["context_hash"] = row.context_hash;
    return doc;
}

Json sample_of(const trace::ResultRow& row, size_t number, const Metrics& metrics, Json doc,
               const trace::PromptAttributes* prompt) {
    const std::string target = list_as_text(answers_of(row), ", ");
    Json sample;
    sample["doc_id"] = number;
    const std::string hash = sha256_of(dumped(doc, 2));
    sample["doc"] = std::move(doc);
    sample["target"] = target;
    sample["arguments"]["gen_args_0"] = {{"arg_0", prompt ? prompt->text : ""}, {"arg_1", Json::object()}};
    sample["resps"] = Json::array({Json::array({row.prediction})});
    sample["filtered_resps"] = Json::array({row.prediction});
    sample["filter"] = "none";
    sample["metrics"] = Json::array();
    for (const auto& [name, value] : metrics) sample["metrics"].push_back(name);
    sample["doc_hash"] = hash;
    sample["prompt_hash"] = row.prompt_hash;
    sample["target_hash"] = sha256_of(target);
    for (const auto& [name, value] : metrics) sample[name] = value;
    return sample;
}

/// Divides the rows of a run into lm-eval's tasks, in the order of their first rows.
std::vector<TaskFile> task_files_of(const WrittenRun& run, const WrittenResults& results) {
    std::vector<TaskFile> files;
    std::set<int64_t> lengths;
    if (run.task == "ruler")
        for (const trace::ResultRow* row : run.rows) lengths.insert(row->length);
    for (const trace::ResultRow* row : run.rows) {
        const std::string name = lm_eval_task(run.task, row->subset);
        auto file = std::ranges::find(files, name, &TaskFile::name);
        if (file == files.end()) file = files.insert(files.end(), {.name = name, .is_ruler = !lengths.empty()});
        const auto known = results.prompts.find(row->prompt_hash);
        const trace::PromptAttributes* prompt = known == results.prompts.end() ? nullptr : &known->second;
        const Metrics metrics = metrics_of(*row, lengths);
        file->samples.push_back(sample_of(*row, file->samples.size(), metrics,
                                          document_of(*row, run.task, results.question(*row)), prompt));
        for (const auto& [metric, value] : metrics) {
            if (std::ranges::find(file->metrics, metric) == file->metrics.end()) file->metrics.push_back(metric);
            if (value != -1) file->values[metric].push_back(value);
        }
        if (std::isfinite(row->seconds)) file->seconds += row->seconds;
    }
    return files;
}

std::string task_hash(const TaskFile& file) {
    std::string hashes;
    for (const Json& sample : file.samples)
        for (const char* key : {"doc_hash", "prompt_hash", "target_hash"}) hashes += sample[key].get<std::string>();
    return sha256_of(hashes);
}

/// sanitize_model_name() in lm-eval
std::string sanitized(const std::string& name) {
    std::string out;
    bool was_replaced = false;
    for (const char c : name) {
        const bool is_replaced = std::string_view("\"<>:/|\\?*[]").find(c) != std::string_view::npos;
        if (!is_replaced)
            out += c;
        else if (!was_replaced)
            out += "__";
        was_replaced = is_replaced;
    }
    return out;
}

std::string name_of_run(const WrittenRun& run) {
    std::string name = run.first().model + ", " + run.setting;
    if (!run.budget.empty()) name += " @ " + run.budget;
    return name + (run.first().question_seen == 0 ? std::string(hidden_question_suffix) : "");
}

Json results_json(const WrittenRun& run, const std::vector<TaskFile>& files, const WrittenResults& results) {
    const trace::ResultRow& row = run.first();
    Json json;
    for (const char* key :
         {"results", "group_subtasks", "configs", "versions", "n-shot", "higher_is_better", "n-samples"})
        json[key] = Json::object();
    double seconds = 0;
    for (const TaskFile& file : files) {
        Json& entry = json["results"][file.name] = {
            {"name", file.name}, {"alias", file.name}, {"sample_len", file.samples.size()}};
        Json& config = json["configs"][file.name] = {
            {"task", file.name}, {"output_type", "generate_until"}, {"metric_list", Json::array()}, {"repeats", 1}};
        for (const std::string& metric : file.metrics) {
            const bool is_length = file.is_ruler && metric.find_first_not_of("0123456789") == std::string::npos;
            const auto values = file.values.find(metric);
            if (values == file.values.end())
                entry[metric + ",none"] = -1;
            else
                add_mean(entry, metric, values->second, !is_length);
            const auto* const measure = std::ranges::find(measures, metric, &Measure::name);
            const bool higher = measure == std::end(measures) || measure->higher_is_better;
            config["metric_list"].push_back(
                {{"metric", metric}, {"aggregation", "mean"}, {"higher_is_better", higher}});
            json["higher_is_better"][file.name][metric] = higher;
        }
        json["versions"][file.name] = 1;
        json["n-shot"][file.name] = 0;
        json["n-samples"][file.name] = {{"original", file.samples.size()}, {"effective", file.samples.size()}};
        seconds += file.seconds;
    }
    json["config"] = {{"model", "kvscope"},
                      {"model_args",
                       {{"pretrained", row.model},
                        {"run", text_of_own_run(run.setting, run.budget)},
                        {"question_seen", row.question_seen}}},
                      {"model_dtype", row.dtype.empty() ? "" : "torch." + name_of_dtype_in_pytorch(row.dtype)},
                      {"batch_size", nullptr},
                      {"batch_sizes", Json::array()},
                      {"device", row.device.empty() ? Json() : Json(row.device)},
                      {"use_cache", nullptr},
                      {"limit", nullptr},
                      {"bootstrap_iters", 0},
                      {"gen_kwargs", nullptr},
                      {"random_seed", row.seed},
                      {"numpy_seed", row.seed},
                      {"torch_seed", row.seed},
                      {"fewshot_seed", row.seed}};
    json["git_hash"] = row.commit.empty() ? Json() : Json(row.commit);
    json["date"] = static_cast<double>(results.created);
    json["pretty_env_info"] = results.generator;
    json["transformers_version"] = nullptr;
    json["lm_eval_version"] = nullptr;
    json["upper_git_hash"] = nullptr;
    json["task_hashes"] = Json::object();
    for (const TaskFile& file : files) json["task_hashes"][file.name] = task_hash(file);
    json["model_source"] = "kvscope";
    json["model_name"] = name_of_run(run);
    json["model_name_sanitized"] = sanitized(name_of_run(run));
    json["system_instruction"] = nullptr;
    json["system_instruction_sha"] = nullptr;
    json["fewshot_as_multiturn"] = false;
    json["chat_template"] = nullptr;
    json["chat_template_sha"] = nullptr;
    json["total_evaluation_time_seconds"] = fmt::format("{}", seconds);
    return json;
}

}  // namespace

std::vector<ResultFile> files_of_lm_eval(const WrittenResults& results) {
    std::vector<ResultFile> files;
    std::map<std::string, int> used;
    const std::string time = fmt::format("{:%Y-%m-%dT%H-%M-%S}", fmt::gmtime(results.created));
    for (const WrittenRun& run : results.runs) {
        if (!run.first().source.empty())
            throw std::runtime_error(fmt::format("{} is a run of {}: only runs of kvscope can be written for lm-eval",
                                                 run.setting, run.first().source));
        const auto tasks = task_files_of(run, results);
        const auto folder = unused_folder(sanitized(name_of_run(run)), used);
        files.push_back({folder / fmt::format("results_{}.json", time), dumped(results_json(run, tasks, results), 2)});
        for (const TaskFile& task : tasks) {
            std::string lines;
            for (const Json& sample : task.samples) lines += dumped_line(sample) + '\n';
            files.push_back({folder / fmt::format("samples_{}_{}.jsonl", task.name, time), std::move(lines)});
        }
    }
    return files;
}

}  // namespace kvscope::results
