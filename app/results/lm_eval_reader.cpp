#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <system_error>
#include <utility>

#include "app/results/imported_results.h"
#include "app/results/measures.h"
#include "app/results/names.h"
#include "app/results/python_list.h"
#include "common/bounded_json.h"
#include "common/full_policy.h"
#include "common/split.h"
#include "trace/records/schema.h"

namespace kvscope::results {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view results_prefix = "results_";

/// Returns the member of an object, or null.
const json& member(const json& object, std::string_view key) {
    static const json nothing;
    if (!object.is_object()) return nothing;
    const auto found = object.find(key);
    return found == object.end() ? nothing : *found;
}

std::string text_in(const json& object, std::string_view key) {
    const json& value = member(object, key);
    return value.is_string() ? value.get<std::string>() : "";
}

std::optional<int64_t> integer_in(const json& object, std::string_view key) {
    const json& value = member(object, key);
    if (!value.is_number_integer()) return std::nullopt;
    return value.get<int64_t>();
}

std::optional<int64_t> integer_of(const std::string& text) {
    int64_t number = 0;
    const char* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, number);
    if (text.empty() || read.ec != std::errc() || read.ptr != end || number < 0) return std::nullopt;
    return number;
}

/// Returns a value of lm-eval's --model_args, which are an object or "pretrained=gpt2,dtype=float".
std::string model_argument(const json& config, std::string_view key) {
    const json& arguments = member(config, "model_args");
    if (arguments.is_object()) return text_in(arguments, key);
    if (!arguments.is_string()) return "";
    for (const std::string_view part : split(arguments.get_ref<const std::string&>(), ','))
        if (part.starts_with(key) && part.substr(key.size()).starts_with('='))
            return std::string(part.substr(key.size() + 1));
    return "";
}

/// Returns the values that all samples of a results file have.
trace::ResultRow row_of_results(const json& results) {
    const json& config = member(results, "config");
    trace::ResultRow row;
    row.depth = row.seconds = row.kept_share = trace::ResultRow::unknown;
    row.budget_fraction = row.kept_share = 1;
    row.policy = full_policy;
    row.parameters_json = "{}";
    row.requested_budget = "1";
    row.model = model_argument(config, "pretrained");
    for (const char* key : {"model_name", "model_source"})
        if (row.model.empty()) row.model = text_in(results, key);
    row.dtype = short_dtype(text_in(config, "model_dtype"));
    row.device = text_in(config, "device");
    if (const auto seed = integer_in(config, "random_seed"); seed && *seed >= 0)
        row.seed = static_cast<std::uint64_t>(*seed);
    if (const auto run = own_run_of_text(model_argument(config, "run"))) {
        row.policy = run->policy.definition->name;
        row.parameters_json = run->policy.values.to_json();
        if (run->budget) row.requested_budget = run->budget->text();
        if (run->budget && !run->budget->is_share) row.budget = run->budget->count;
        row.commit = text_in(results, "git_hash");
        row.question_seen =
            std::clamp<int64_t>(integer_in(member(config, "model_args"), "question_seen").value_or(-1), -1, 1);
        return row;
    }
    row.source = "lm-eval";
    return row;
}

/// Which of a sample's metrics is its score.
struct ChosenMetric {
    std::string metric;  ///< empty: the first one
    std::string filter;  ///< empty: that of the first sample
};

/// Metrics of a sample, without kvscope's measures.
std::vector<std::string> metrics_in(const json& sample) {
    std::vector<std::string> names;
    const auto add = [&](const std::string& name) {
        if (std::ranges::find(measures, name, &Measure::name) == std::end(measures)) names.push_back(name);
    };
    const json& listed = member(sample, "metrics");
    if (listed.is_array()) {
        for (const json& name : listed)
            if (name.is_string()) add(name.get<std::string>());
        return names;
    }
    const std::set<std::string> fields = {"doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter"};
    for (const auto& [name, value] : sample.items())  // earlier versions of lm-eval
        if (!fields.contains(name) && (value.is_number() || value.is_boolean())) add(name);
    return names;
}

/// Reads the samples of one task.
class SamplesFile {
 public:
    SamplesFile(const fs::path& file, std::string task, trace::ResultRow of_all, ChosenMetric chosen,
                Imported& imported)
        : file_(file),
          task_(std::move(task)),
          of_all_(std::move(of_all)),
          chosen_(std::move(chosen)),
          imported_(imported) {}

    void read() {
        if (!of_all_.source.empty() && as_table_name(task_) == trace::schema::root::prompt_results) {
            imported_.left_out.push_back(fmt::format(
                "{}: expected another task than {}, a name that is reserved for prompts of kvscope. Rename the task in "
                "lm-eval and evaluate it again",
                file_.string(), task_));
            return;
        }
        const std::string text = read_result_file(file_, imported_);
        int number = 0;
        SampleProblems problems;
        for (const std::string_view line : split(text, '\n')) {
            ++number;
            if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
            try {
                add(bounded_json::parse_or_discard(line));
            } catch (const UnusableFile& error) {
                problems.add(fmt::format("{}:{}: {}", file_.string(), number, error.what()));
            }
        }
        if (!problems.empty()) imported_.left_out.push_back(problems.text("lines"));
        if (run_.rows.empty() && problems.empty())
            imported_.left_out.push_back(fmt::format("{}: expected samples, found none{}", file_.string(),
                                                     chosen_.filter.empty() ? "" : " of the filter " + chosen_.filter));
        if (!run_.rows.empty()) imported_.runs.push_back(std::move(run_));
    }

 private:
    void add(const json& sample) {
        if (!sample.is_object() || !integer_in(sample, "doc_id"))
            throw UnusableFile("expected a JSON object with \"doc_id\". Copy the file again");
        const std::string filter = text_in(sample, "filter");
        if (chosen_.filter.empty()) chosen_.filter = filter;
        if (filter != chosen_.filter) return;
        trace::ResultRow row = of_all_;
        set_place(row, sample);
        set_answer(row, sample);
        row.prompt_hash = text_in(sample, "prompt_hash");
        set_score(row, sample);
        for (const Measure& measure : measures)
            if (const json& value = member(sample, measure.name); of_all_.source.empty())
                row.*measure.member = value.is_number() ? value.get<double>() : trace::ResultRow::unknown;
        if (std::isnan(row.budget_fraction)) row.budget_fraction = 0;
        run_.rows.push_back(std::move(row));
    }

    void set_place(trace::ResultRow& row, const json& sample) {
        const json& doc = member(sample, "doc");
        auto [table, subset] = task_and_subset(task_);
        row.sample_id = fmt::format("{}-{}", task_, *integer_in(sample, "doc_id"));
        if (of_all_.source.empty()) {
            if (const std::string task = text_in(doc, "task"); !task.empty()) table = task;
            subset = text_in(doc, "subset");
            if (const std::string id = text_in(doc, "sample_id"); !id.empty()) row.sample_id = id;
            row.sample_hash = checked_hash(text_in(doc, "sample_hash"), "sample_hash");
            row.context_hash = checked_hash(text_in(doc, "context_hash"), "context_hash");
            if (const json& depth = member(doc, "depth"); depth.is_number()) row.depth = depth.get<double>();
        }
        row.subset = std::move(subset);
        row.length =
            std::max<int64_t>(integer_in(doc, "max_length").value_or(integer_in(doc, "length").value_or(0)), 0);
        if (run_.task.empty()) run_.task = as_table_name(table);
    }

    static std::string as_table_name(std::string name) {
        for (char& c : name)
            if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.'))
                c = '_';
        return name.empty() || name.front() == '.' ? "_" + name : name;
    }

    static void set_answer(trace::ResultRow& row, const json& sample) {
        const json& target = member(sample, "target");
        const std::string text = target.is_string() ? target.get<std::string>() : target.is_null() ? "" : target.dump();
        const auto elements = elements_of_list(text);
        row.answers_json =
            json(elements ? *elements : std::vector{text}).dump(-1, ' ', false, json::error_handler_t::replace);
        const json& responses = member(sample, "filtered_resps");
        if (!responses.is_array() || responses.empty()) return;
        const json& first = responses.front();
        if (first.is_string()) {
            row.prediction = first.get<std::string>();
        } else if (first.is_array() && first.size() == 2) {  // [log probability, whether greedy] of each choice
            row.prediction = likeliest_choice(responses, member(sample, "arguments"));
        } else if (first.is_array() && !first.empty() && first.front().is_string()) {
            row.prediction = first.front().get<std::string>();
        }
    }

    static std::string likeliest_choice(const json& responses, const json& arguments) {
        size_t best = 0;
        double most = -INFINITY;
        for (size_t i = 0; i < responses.size(); ++i) {
            const json& value = responses[i].is_array() && !responses[i].empty() ? responses[i].front() : json();
            double number = NAN;
            if (value.is_number()) number = value.get<double>();
            if (value.is_string()) {
                const std::string& text = value.get_ref<const std::string&>();
                std::from_chars(text.data(), text.data() + text.size(), number);
            }
            if (!(number > most)) continue;
            most = number;
            best = i;
        }
        const std::string text = text_in(member(arguments, fmt::format("gen_args_{}", best)), "arg_1");
        return text.empty() ? std::to_string(best) : text;
    }

    /// lm-eval's tasks of RULER have one metric per length, which is -1 for samples of other lengths.
    void set_score(trace::ResultRow& row, const json& sample) {
        const std::vector<std::string> names = metrics_in(sample);
        const auto is_of_sample = [&](const std::string& name) {
            const json& value = member(sample, name);
            return !(integer_of(name) && value.is_number() && value.get<double>() == -1);
        };
        std::string name = chosen_.metric;
        if (name.empty()) {
            const auto own = std::ranges::find_if(
                names, [&](const std::string& one) { return is_of_sample(one) && one != "score"; });
            const auto any = std::ranges::find_if(names, is_of_sample);
            if (any == names.end()) throw UnusableFile("expected a metric, found none. Name one with --metric");
            name = own == names.end() ? *any : *own;
        }
        const json& value = member(sample, name);
        const double score = value.is_boolean()  ? (value.get<bool>() ? 1 : 0)
                             : value.is_number() ? value.get<double>()
                                                 : NAN;
        if (!(score >= 0 && score <= 1))
            throw UnusableFile(fmt::format(
                "expected a number from 0 to 1 as the metric \"{}\", found {}. Name another metric with --metric; the "
                "sample has {}",
                name,
                value.is_null() ? "nothing" : value.dump(-1, ' ', false, json::error_handler_t::replace).substr(0, 40),
                fmt::join(names, ", ")));
        row.score = score;
        row.metric = name;
        if (const auto length = integer_of(name)) {
            row.metric = row.subset.starts_with("qa") ? "string_match_part" : "string_match_all";
            row.length = *length;
        }
        row.scored_as = of_all_.source.empty() ? text_in(member(sample, "doc"), "scored_as") : "lm-eval";
        if (chosen_.filter != "none" && !chosen_.filter.empty())
            row.scored_as = row.scored_as + ", filter " + chosen_.filter;
    }

    const fs::path& file_;
    std::string task_;
    trace::ResultRow of_all_;
    ChosenMetric chosen_;
    Imported& imported_;
    ImportedRun run_{};
};

}  // namespace

void read_lm_eval_file(const fs::path& file, const std::string& metric, Imported& imported) {
    const std::string stem = file.stem().string();
    if (!stem.starts_with(results_prefix) || file.extension() != ".json")
        throw UnusableFile(fmt::format("{}: expected a name such as results_2025-01-31T12-00-00.json", file.string()));
    const json results = bounded_json::parse_or_discard(read_result_file(file, imported));
    const json& scores = member(results, "results");
    if (!scores.is_object())
        throw UnusableFile(fmt::format(
            "{}: expected lm-eval's JSON with \"results\", found other contents. Copy the file again", file.string()));
    const size_t comma = metric.find(',');
    const ChosenMetric chosen{metric.substr(0, comma), comma == std::string::npos ? "" : metric.substr(comma + 1)};
    const trace::ResultRow of_all = row_of_results(results);
    const std::string time = stem.substr(results_prefix.size());
    const json& tasks = member(results, "configs").is_object() ? member(results, "configs") : scores;
    size_t n_files = 0;
    for (const auto& [task, of_task] : tasks.items()) {
        const fs::path samples = file.parent_path() / fmt::format("samples_{}_{}.jsonl", task, time);
        std::error_code error;
        if (!fs::exists(samples, error)) {
            imported.left_out.push_back(
                fmt::format("{}: expected the samples of {} in this file, found no file. lm-eval writes it with "
                            "--log_samples",
                            samples.string(), task));
            continue;
        }
        ++n_files;
        SamplesFile(samples, task, of_all, chosen, imported).read();
    }
    if (n_files == 0 && imported.left_out.empty())
        throw UnusableFile(fmt::format("{}: expected tasks in \"results\", found none", file.string()));
}

}  // namespace kvscope::results
