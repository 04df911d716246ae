#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

#include "app/results/csv.h"
#include "app/results/imported_results.h"
#include "app/results/kvpress_scores.h"
#include "app/results/names.h"
#include "app/results/python_list.h"
#include "common/bounded_json.h"
#include "common/full_policy.h"
#include "policies/registry/policy_from_record.h"

namespace kvscope::results {
namespace {

namespace fs = std::filesystem;

std::optional<double> number_in(const std::string& text) {
    double number = 0;
    const char* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, number);
    if (text.empty() || read.ec != std::errc() || read.ptr != end || !std::isfinite(number)) return std::nullopt;
    return number;
}

template <class Integer>
std::optional<Integer> integer_in(const std::string& text) {
    Integer number = 0;
    const char* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, number);
    if (text.empty() || read.ec != std::errc() || read.ptr != end) return std::nullopt;
    return number;
}

/// config.yaml
class Config {
 public:
    Config(const std::string& text, std::string file) : file_(std::move(file)) {
        try {
            node_ = YAML::Load(text);
        } catch (const YAML::Exception& error) {
            throw UnusableFile(
                fmt::format("{}: expected YAML, found an error: {}. Copy the file again", file_, error.what()));
        }
        if (!node_.IsMap())
            throw UnusableFile(
                fmt::format("{}: expected settings such as \"dataset: ruler\". Copy the file again", file_));
    }

    /// Returns "" for a key that is missing or null.
    [[nodiscard]] std::string text(const std::string& key) const { return text_of(std::as_const(node_)[key]); }
    [[nodiscard]] std::string text(const std::string& group, const std::string& key) const {
        const YAML::Node found = std::as_const(node_)[group];
        return found && found.IsMap() ? text_of(found[key]) : "";
    }
    [[nodiscard]] std::string required_text(const std::string& key) const {
        std::string found = text(key);
        if (found.empty())
            throw UnusableFile(
                fmt::format("{}: expected a value of {}, found none. Add the line, as in \"{}: …\"", file_, key, key));
        return found;
    }
    [[nodiscard]] std::optional<double> number(const std::string& key) const {
        const std::string found = text(key);
        if (found.empty()) return std::nullopt;
        const auto number = number_in(found);
        if (!number) throw UnusableFile(fmt::format("{}: {}: expected a number, found '{}'", file_, key, found));
        return number;
    }
    /// Returns nullopt for no seed and for negative ones.
    [[nodiscard]] std::optional<std::uint64_t> seed() const {
        const auto as_number = number("seed");
        if (!as_number || *as_number < 0) return std::nullopt;
        const auto seed = integer_in<std::uint64_t>(text("seed"));
        if (!seed)
            throw UnusableFile(fmt::format("{}: seed: expected a whole number below 2^64, found '{}'. Correct the line",
                                           file_, text("seed")));
        return seed;
    }
    [[nodiscard]] bool is_true(const std::string& key) const { return text(key) == "true"; }

 private:
    static std::string text_of(const YAML::Node& node) { return node && node.IsScalar() ? node.Scalar() : ""; }

    std::string file_;
    YAML::Node node_;
};

/// The columns of predictions.csv that are used.
class Predictions {
 public:
    Predictions(CsvTable table, const std::string& file) : table_(std::move(table)) {
        if (!table_.column("predicted_answer"))
            throw UnusableFile(fmt::format(
                "{}: expected a column predicted_answer, found {}. Name a folder of kvpress's evaluation", file,
                table_.columns.empty() ? "no columns" : fmt::format("only {}", fmt::join(table_.columns, ", "))));
        if (table_.rows.empty()) throw UnusableFile(fmt::format("{}: expected predictions, found none", file));
    }

    [[nodiscard]] size_t size() const { return table_.rows.size(); }
    [[nodiscard]] std::string text(size_t row, std::string_view name) const {
        const auto column = table_.column(name);
        return column ? table_.rows[row][*column] : "";
    }
    [[nodiscard]] std::optional<double> number(size_t row, std::string_view name) const {
        return number_in(text(row, name));
    }
    /// Returns the elements of a list, or the text as one element; none for an empty field.
    [[nodiscard]] std::vector<std::string> texts(size_t row, std::string_view name) const {
        std::string found = text(row, name);
        if (found.empty()) return {};
        if (auto elements = elements_of_list(found)) return *std::move(elements);
        return {std::move(found)};
    }

 private:
    CsvTable table_;
};

std::string json_of_list(const std::vector<std::string>& texts) {
    return nlohmann::json(texts).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Sets policy, parameters and budget of a run of kvscope. Returns false for other texts.
bool set_own_run(trace::ResultRow& row, std::string_view command) {
    const auto run = own_run_of_text(command);
    if (!run) return false;
    row.policy = run->policy.definition->name;
    row.parameters_json = run->policy.values.to_json();
    row.requested_budget = run->budget ? run->budget->text() : "1";
    if (run->budget && !run->budget->is_share) row.budget = run->budget->count;
    return true;
}

/// Returns the values that all samples of the run have.
trace::ResultRow row_of_config(const Config& config, const Predictions& predictions) {
    trace::ResultRow row;
    row.depth = row.seconds = row.kept_share = trace::ResultRow::unknown;
    row.model = config.required_text("model");
    row.dtype = short_dtype(config.text("model_kwargs", "dtype"));
    row.device = config.text("device");
    row.question_seen = config.is_true("query_aware") ? 1 : 0;
    row.seed = config.seed().value_or(row.seed);
    if (const auto depth = config.number("needle_depth"); depth && *depth >= 0 && *depth <= 100)
        row.depth = *depth / 100;
    const std::string press = config.required_text("press_name"), command = config.text("press_init_command");
    if (set_own_run(row, command)) return row;
    row.source = "kvpress";
    nlohmann::json parameters = nlohmann::json::object();
    for (const char* key : {"threshold", "head_compression_ratio", "key_channel_compression_ratio", "target_size",
                            "compression_interval"})
        if (const auto number = config.number(key)) parameters[key] = *number;
    if (press == "no_press") {
        row.policy = full_policy;
        row.requested_budget = "1";
    } else {
        row.policy = press;
        parameters["press"] = without_compression_ratio(command);
        // The presses compute the ratio in the table. The configuration has the requested one.
        double sum = 0;
        size_t n = 0;
        for (size_t i = 0; i < predictions.size(); ++i)
            if (const auto ratio = predictions.number(i, "compression_ratio")) {
                sum += *ratio;
                ++n;
            }
        const auto removed = n > 0 ? std::optional(sum / static_cast<double>(n)) : config.number("compression_ratio");
        const double kept = removed ? std::round((1 - *removed) * 1e6) / 1e6 : 0;
        if (kept > 0 && kept <= 1) row.requested_budget = fmt::format("{:g}", kept);
    }
    row.parameters_json = parameters.dump();
    return row;
}

struct TaskPart {
    std::string table, subset;
};

TaskPart part_of(const std::string& dataset, const std::string& task, const Predictions& predictions, size_t row) {
    if (dataset == "longbench") return {"longbench", task};
    if (dataset == "longbench-e") {
        const auto length = predictions.number(row, "length");
        if (!length) return {"longbench", task + "_e"};
        return {"longbench", fmt::format("{}_e/{}", task, *length < 4000 ? "0-4k" : *length < 8000 ? "4-8k" : "8k+")};
    }
    if (dataset == "longbench-v2")
        return {dataset, fmt::format("{}/{}", predictions.text(row, "difficulty"), predictions.text(row, "length"))};
    return {dataset, task == dataset ? "" : task};
}

/// Text that distinguishes the samples of two folders of one data set.
std::string name_of_data(const Config& config) {
    std::string name = config.text("dataset");
    if (const std::string part = config.text("data_dir"); !part.empty()) name += "-" + part;
    if (const auto fraction = config.number("fraction"); fraction && *fraction < 1)
        name += fmt::format("-fraction{:.3f}", *fraction);
    for (const char* key : {"max_context_length", "needle_depth"})
        if (const std::string value = config.text(key); !value.empty()) name += fmt::format("-{}{}", key, value);
    return name;
}

void add_question(analysis::QuestionsOfSamples& questions, const trace::ResultRow& row, std::string question) {
    if (question.empty()) return;
    const auto [place, is_new] = questions.try_emplace({row.sample_id, row.question_seen != 0}, question);
    if (!is_new && place->second != question) place->second.clear();
}

/// A sample's score in metrics.json.
struct StoredScore {
    std::string metric, scored_as;
    double score = NAN;                                               ///< 0 to 1
    std::string sample_id = {}, sample_hash = {}, context_hash = {};  ///< as kvscope wrote them, or empty
};

/// Returns ROUGE-L's F of each sample of needle_in_haystack; empty for other contents of metrics.json.
std::vector<StoredScore> stored_rouge(const nlohmann::json& metrics) {
    std::vector<StoredScore> scores;
    if (!metrics.is_array()) return scores;
    for (const nlohmann::json& sample : metrics) {
        const nlohmann::json::json_pointer f("/rouge-l/f");
        if (!sample.is_object() || !sample.contains(f) || !sample[f].is_number()) return {};
        scores.push_back(
            {"rouge_l_score", "needle_in_haystack of kvpress", std::clamp(sample[f].get<double>(), 0.0, 1.0)});
    }
    return scores;
}

/// Returns the score of each sample that kvpress or kvscope stored; empty if there is none.
std::vector<StoredScore> stored_scores(const nlohmann::json& metrics, const std::string& dataset) {
    if (dataset == "needle_in_haystack" && metrics.is_array()) return stored_rouge(metrics);
    std::vector<StoredScore> scores;
    if (!metrics.is_object() || !metrics.contains(scores_of_samples) || !metrics[scores_of_samples].is_array())
        return scores;
    for (const nlohmann::json& sample : metrics[scores_of_samples]) {
        StoredScore& stored = scores.emplace_back();
        if (!sample.is_object()) continue;
        const auto text = [&](const char* key) {
            return sample.contains(key) && sample[key].is_string() ? sample[key].get<std::string>() : "";
        };
        stored.metric = text("metric");
        stored.scored_as = text("scored_as");
        stored.sample_id = text("sample_id");
        stored.sample_hash = text("sample_hash");
        stored.context_hash = text("context_hash");
        if (sample.contains("score") && sample["score"].is_number()) stored.score = sample["score"].get<double>();
    }
    return scores;
}

/// Returns kvpress's metric of a task of RULER, or of a set of LongBench, in per cent.
std::optional<double> stored_mean(const nlohmann::json& metrics, const std::string& dataset, const std::string& task) {
    if (dataset == "longbench" && metrics.is_number()) return metrics.get<double>();
    if (dataset != "ruler" || !metrics.is_object() || !metrics.contains(task) || !metrics[task].is_object())
        return std::nullopt;
    const auto found = metrics[task].find("string_match");
    if (found == metrics[task].end() || !found->is_number()) return std::nullopt;
    return found->get<double>();
}

void compare_with_metrics(const std::vector<trace::ResultRow>& rows, const nlohmann::json& metrics,
                          const std::string& dataset, const std::string& file, Imported& imported) {
    constexpr double rounding = 0.0051;
    std::map<std::string, std::vector<double>> scores;
    for (const trace::ResultRow& row : rows) scores[row.subset].push_back(row.score);
    for (const auto& [task, of_task] : scores) {
        const auto stored = stored_mean(metrics, dataset, task);
        const double mean =
            100 * std::accumulate(of_task.begin(), of_task.end(), 0.0) / static_cast<double>(of_task.size());
        if (stored && std::abs(*stored - mean) > rounding)
            imported.notes.push_back(
                fmt::format("{}: the score of {} is {:.2f}, but the predictions give {:.2f}, which is used. The "
                            "version of kvpress may score differently from kvscope",
                            file, task, *stored, mean));
    }
}

/// Adds a note if metrics.json has scores of tasks without predictions.
void note_missing_tasks(const Predictions& predictions, const nlohmann::json& metrics, const std::string& dataset,
                        const std::string& file, Imported& imported) {
    if (!metrics.is_object()) return;
    std::set<std::string> predicted;
    for (size_t i = 0; i < predictions.size(); ++i) {
        const std::string task = predictions.text(i, "task");
        predicted.insert(task.empty() ? dataset : task);
    }
    std::vector<std::string> missing;
    for (const auto& [task, scores] : metrics.items())  // other values are scores of difficulties or lengths
        if (scores.is_object() && !predicted.contains(task)) missing.push_back(task);
    if (!missing.empty())
        imported.notes.push_back(fmt::format(
            "{}: expected predictions of {} in predictions.csv, because the file has their scores, found none: these "
            "tasks are missing. Copy predictions.csv again",
            file, fmt::join(missing, ", ")));
}

void require_name_of_table(const std::string& name, const std::string& file) {
    const bool is_plain = !name.empty() && name.front() != '.' && std::ranges::all_of(name, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
               c == '.';
    });
    if (!is_plain)
        throw UnusableFile(
            fmt::format("{}: dataset: expected a name of letters, digits, '_', '-' and '.', found '{}'", file, name));
}

}  // namespace

void read_kvpress_folder(const fs::path& folder, Imported& imported) {
    const fs::path csv_file = folder / "predictions.csv", config_file = folder / "config.yaml",
                   metrics_file = folder / "metrics.json";
    const Config config(read_result_file(config_file, imported), config_file.string());
    const std::string dataset = config.required_text("dataset");
    require_name_of_table(dataset, config_file.string());
    const Predictions predictions(read_csv(read_result_file(csv_file, imported), csv_file.string()), csv_file.string());
    const trace::ResultRow of_all = row_of_config(config, predictions);
    std::error_code error;
    nlohmann::json metrics;
    if (fs::exists(metrics_file, error)) {
        metrics = bounded_json::parse_or_discard(read_result_file(metrics_file, imported));
        if (metrics.is_discarded())
            throw UnusableFile(metrics_file.string() + ": expected JSON. Copy the file again, or remove the copy");
    }
    const std::vector<StoredScore> stored = stored_scores(metrics, dataset);
    const std::string data = name_of_data(config);
    const auto length = integer_in<int64_t>(dataset == "needle_in_haystack" ? config.text("max_context_length")
                                            : dataset == "longbench-v2"     ? ""
                                                                            : config.text("data_dir"));
    ImportedRun run;
    size_t n_unscored = 0;
    SampleProblems problems;
    for (size_t i = 0; i < predictions.size(); ++i) {
        trace::ResultRow row = of_all;
        std::string task = predictions.text(i, "task");
        if (task.empty()) task = dataset;
        const TaskPart part = part_of(dataset, task, predictions, i);
        run.task = part.table;
        row.subset = part.subset;
        row.sample_id = fmt::format("{}-{}", data, i);
        if (stored.size() == predictions.size() && !stored[i].sample_id.empty()) {
            row.sample_id = stored[i].sample_id;
            try {
                row.sample_hash = checked_hash(stored[i].sample_hash, "sample_hash");
                row.context_hash = checked_hash(stored[i].context_hash, "context_hash");
            } catch (const UnusableFile& error) {
                problems.add(fmt::format("{}: sample {}: {}", metrics_file.string(), i + 1, error.what()));
                continue;
            }
        }
        if (length && *length >= 0) row.length = *length;
        auto answers = predictions.texts(i, "answer");
        if (answers.empty()) answers = predictions.texts(i, "answers");
        if (answers.empty()) answers = predictions.texts(i, "needle");
        row.answers_json = json_of_list(answers);
        row.prediction = predictions.text(i, "predicted_answer");
        const bool is_full = row.policy == full_policy;
        const auto removed = predictions.number(i, "compression_ratio");
        const auto asked = number_in(row.requested_budget);
        row.budget_fraction = is_full                ? 1
                              : removed              ? std::clamp(1 - *removed, 0.0, 1.0)
                              : asked && *asked <= 1 ? *asked
                                                     : 0;
        if (is_full) row.kept_share = 1;
        if (stored.size() == predictions.size() && stored[i].score >= 0 && stored[i].score <= 1) {
            row.metric = stored[i].metric;
            row.scored_as = stored[i].scored_as;
            row.score = stored[i].score;
        } else {
            const auto scorer =
                answers.empty() ? std::nullopt : scorer_of_kvpress(dataset, task, predictions.texts(i, "all_classes"));
            if (!scorer) {
                ++n_unscored;
                continue;
            }
            row.metric = scorer->metric;
            row.scored_as = scorer->scored_as;
            row.score = scorer->score(row.prediction, answers);
        }
        add_question(imported.questions, row, predictions.text(i, "question"));
        run.rows.push_back(std::move(row));
    }
    if (!problems.empty()) {
        if (run.rows.empty()) throw UnusableFile(problems.text("samples"));
        imported.left_out.push_back(problems.text("samples"));
    }
    if (n_unscored > 0) {
        const std::string what = fmt::format(
            "{}: {} of {} predictions of {} have no score: metrics.json has none, and kvscope lacks kvpress's scorer "
            "of "
            "this data set, or the columns answer or all_classes are empty. Export results of kvscope again",
            csv_file.string(), n_unscored, predictions.size(), dataset);
        if (run.rows.empty()) throw UnusableFile(what);
        imported.left_out.push_back(what);
    }
    note_missing_tasks(predictions, metrics, dataset, metrics_file.string(), imported);
    compare_with_metrics(run.rows, metrics, dataset, metrics_file.string(), imported);
    imported.runs.push_back(std::move(run));
}

}  // namespace kvscope::results
