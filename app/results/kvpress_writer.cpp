#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "app/results/csv.h"
#include "app/results/kvpress_scores.h"
#include "app/results/names.h"
#include "app/results/python_list.h"
#include "app/results/written_results.h"
#include "common/bounded_json.h"
#include "common/json.h"

namespace kvscope::results {
namespace {

using Rows = std::vector<const trace::ResultRow*>;

/// Where kvpress puts a sample.
struct KvpressPart {
    std::string dataset, data_dir, task;
};

KvpressPart kvpress_part_of(const std::string& table, const trace::ResultRow& row) {
    const std::string& subset = row.subset;
    if (table == "ruler" || table == "niah")
        return {table, row.length > 0 ? std::to_string(row.length) : "", subset.empty() ? table : subset};
    if (table == "longbench") {
        const std::string set = subset.substr(0, subset.find('/'));
        const bool is_e = set.ends_with("_e");
        return {is_e ? "longbench-e" : "longbench", set, is_e ? set.substr(0, set.size() - 2) : set};
    }
    if (table == "longbench-v2") return {table, "0shot", table};
    return {table, "", subset.empty() ? table : subset};
}

/// Returns the part after '/' of a subset such as "qasper_e/4-8k".
std::string bucket_of(const trace::ResultRow& row) {
    const std::string& subset = row.subset;
    const size_t slash = subset.find('/');
    return slash == std::string::npos ? "" : subset.substr(slash + 1);
}

double removed_share(const trace::ResultRow& row) {
    return std::round((1 - std::clamp(row.budget_fraction, 0.0, 1.0)) * 1e6) / 1e6;
}

double mean_of(const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Formats a number as Python does: "0.0", "0.5".
std::string number_as_in_python(double number) {
    std::string text = fmt::format("{}", number);
    if (text.find_first_of(".en") == std::string::npos) text += ".0";
    return text;
}

/// Returns a YAML scalar as PyYAML writes it, in quotation marks if the text would be read as another type.
std::string yaml_text(const std::string& text) {
    const bool is_plain = !text.empty() && std::ranges::all_of(text, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
               c == '.' || c == '/';
    }) && ((text[0] >= 'a' && text[0] <= 'z') || (text[0] >= 'A' && text[0] <= 'Z'));
    constexpr std::string_view words[] = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"};
    std::string lower = text;
    std::ranges::transform(lower, lower.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; });
    if (is_plain && std::ranges::find(words, lower) == std::end(words)) return text;
    const bool has_control = std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20; });
    if (has_control) return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
    std::string quoted = "'";
    for (const char c : text) {
        if (c == '\'') quoted += '\'';
        quoted += c;
    }
    return quoted + "'";
}

/// Name of a press: "no_press", "streaming_llm", "snapkv:window=8".
std::string press_of(const WrittenRun& run) {
    if (run.is_full()) return "no_press";
    std::string name = run.first().source.empty() ? run.setting : run.first().policy.string();
    const auto end = name.begin() + static_cast<std::ptrdiff_t>(std::min(name.find(':'), name.size()));
    std::replace(name.begin(), end, '-', '_');
    return name;
}

std::string press_command_of(const WrittenRun& run) {
    if (run.first().source.empty()) return text_of_own_run(run.setting, run.budget);
    if (run.is_full()) return "None";
    const nlohmann::json parameters = bounded_json::parse_or_discard(run.first().parameters_json);
    const auto press = parameters.is_object() ? parameters.find("press") : parameters.end();
    return press != parameters.end() && press->is_string() ? press->get<std::string>() : run.first().policy.string();
}

std::string config_yaml(const WrittenRun& run, const KvpressPart& part, double ratio) {
    const trace::ResultRow& row = run.first();
    const std::pair<const char*, std::string> values[] = {
        {"dataset", yaml_text(part.dataset)},
        {"data_dir", part.data_dir.empty() ? "null" : yaml_text(part.data_dir)},
        {"model", yaml_text(row.model)},
        {"device", row.device.empty() ? "null" : yaml_text(row.device)},
        {"press_name", yaml_text(press_of(run))},
        {"compression_ratio", number_as_in_python(ratio)},
        {"key_channel_compression_ratio", "null"},
        {"fraction", "1.0"},
        {"max_new_tokens", "null"},
        {"max_context_length", "null"},
        {"query_aware", row.question_seen == 1 ? "true" : "false"},
        {"needle_depth", "null"},
        {"compression_interval", "null"},
        {"target_size", "null"},
        {"hidden_states_buffer_size", "null"},
        {"output_dir", "./results"},
        {"log_level", "INFO"},
        {"model_kwargs", "\n  dtype: " + name_of_dtype_in_pytorch(row.dtype)},
        {"press_init_command", yaml_text(press_command_of(run))},
        {"seed", std::to_string(row.seed)},
        {"fp8", "false"},
    };
    std::string text;
    for (const auto& [key, value] : values)
        text += fmt::format("{}:{}{}\n", key, value.starts_with('\n') ? "" : " ", value);
    return text;
}

std::vector<std::string> columns_of(const std::string& dataset) {
    if (dataset.starts_with("longbench-v2"))
        return {"_id",      "domain",         "sub_domain",    "difficulty",       "length",
                "question", "choice_A",       "choice_B",      "choice_C",         "choice_D",
                "answer",   "max_new_tokens", "answer_prefix", "predicted_answer", "compression_ratio"};
    if (dataset.starts_with("longbench"))
        return {"question", "answers",       "length", "dataset",        "language",         "all_classes",
                "_id",      "answer_prefix", "task",   "max_new_tokens", "predicted_answer", "compression_ratio"};
    return {"question", "answer_prefix", "answer", "task", "max_new_tokens", "predicted_answer", "compression_ratio"};
}

std::string predictions_csv(const std::string& table_of_results, const Rows& rows, const KvpressPart& part,
                            const WrittenResults& results) {
    const bool is_v2 = part.dataset == "longbench-v2";
    CsvTable table{columns_of(part.dataset), {}};
    for (const trace::ResultRow* row : rows) {
        const std::vector<std::string> answers = answers_of(*row);
        const std::string answer = !is_v2 ? list_as_text(answers, " ") : answers.empty() ? "" : answers.front();
        const std::map<std::string, std::string> values = {
            {"question", results.question(*row)},
            {"answer", answer},
            {"answers", answer},
            {"task", kvpress_part_of(table_of_results, *row).task},
            {"dataset", part.data_dir},
            {"difficulty", is_v2 ? row->subset.string().substr(0, row->subset.string().find('/')) : ""},
            {"length", is_v2 ? bucket_of(*row) : ""},
            {"_id", row->sample_id},
            {"predicted_answer", row->prediction},
            {"compression_ratio", number_as_in_python(removed_share(*row))},
        };
        std::vector<std::string>& fields = table.rows.emplace_back();
        for (const std::string& column : table.columns) {
            const auto found = values.find(column);
            fields.push_back(found == values.end() ? "" : found->second);
        }
    }
    return csv_text(table);
}

/// kvpress's metric: a mean in per cent with two decimals.
double per_cent(const std::vector<double>& scores) { return std::round(mean_of(scores) * 1e4) / 1e2; }

/// Returns the rows' own scores, with the names of their metrics.
nlohmann::ordered_json own_metrics(const std::string& table_of_results, const Rows& rows) {
    std::map<std::pair<std::string, std::string>, std::vector<double>> scores;  // by task and metric
    nlohmann::ordered_json samples = nlohmann::ordered_json::array();
    for (const trace::ResultRow* row : rows) {
        if (std::isfinite(row->score))
            scores[{kvpress_part_of(table_of_results, *row).task, row->metric}].push_back(row->score);
        samples.push_back({{"metric", row->metric},
                           {"scored_as", row->scored_as},
                           {"score", row->score},
                           {"sample_id", row->sample_id},
                           {"sample_hash", row->sample_hash},
                           {"context_hash", row->context_hash}});
    }
    nlohmann::ordered_json metrics = nlohmann::ordered_json::object();
    for (const auto& [key, of_task] : scores) metrics[key.first][key.second] = per_cent(of_task);
    metrics[scores_of_samples] = std::move(samples);
    return metrics;
}

std::string metrics_json(const std::string& table_of_results, const Rows& rows, const KvpressPart& part) {
    const bool is_of_kvpress = part.dataset == "ruler" || part.dataset.starts_with("longbench");
    if (!is_of_kvpress)
        return own_metrics(table_of_results, rows)
            .dump(4, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    std::map<std::string, std::vector<double>> scores;  // by task; by difficulty and length; by length
    std::vector<double> all;
    const bool is_v2 = part.dataset == "longbench-v2", is_e = part.dataset == "longbench-e";
    for (const trace::ResultRow* row : rows) {
        const std::string task = kvpress_part_of(table_of_results, *row).task;
        const std::vector<std::string> answers = answers_of(*row);
        const auto scorer =
            row->source.empty() && !answers.empty() ? scorer_of_kvpress(part.dataset, task, {}) : std::nullopt;
        const double score = scorer ? scorer->score(row->prediction, answers) : row->score;
        if (!std::isfinite(score)) continue;
        all.push_back(score);
        if (is_v2) scores[row->subset.string().substr(0, row->subset.string().find('/'))].push_back(score);
        scores[is_v2 || is_e ? bucket_of(*row) : task].push_back(score);
    }
    nlohmann::ordered_json metrics = nlohmann::ordered_json::object();
    if (part.dataset == "longbench") {
        if (!all.empty()) metrics = per_cent(all);
    } else if (is_e) {
        for (const char* bucket : {"0-4k", "4-8k", "8k+"})
            metrics[bucket] =
                scores[bucket].empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(per_cent(scores[bucket]));
    } else if (is_v2) {
        if (!all.empty()) metrics["average"] = mean_of(all);
        for (const auto& [group, of_group] : scores) metrics[group] = mean_of(of_group);
    } else {
        for (const auto& [task, of_task] : scores) metrics[task] = {{"string_match", per_cent(of_task)}};
    }
    return metrics.dump(4);
}

}  // namespace

std::vector<ResultFile> files_of_kvpress(const WrittenResults& results) {
    std::vector<ResultFile> files;
    std::map<std::string, int> used;
    for (const WrittenRun& run : results.runs) {
        std::map<std::pair<std::string, std::string>, Rows> parts;  // by data set and its part
        for (const trace::ResultRow* row : run.rows) {
            const KvpressPart part = kvpress_part_of(run.task, *row);
            parts[{part.dataset, part.data_dir}].push_back(row);
        }
        for (const auto& [key, rows] : parts) {
            const KvpressPart part = kvpress_part_of(run.task, *rows.front());
            std::vector<double> removed;
            for (const trace::ResultRow* row : rows) removed.push_back(removed_share(*row));
            const double ratio = run.is_full() ? 0 : std::round(mean_of(removed) * 1e6) / 1e6;
            std::string model = run.first().model;
            for (size_t at = model.find('/'); at != std::string::npos; at = model.find('/', at))
                model.replace(at, 1, "--");
            std::string name = part.dataset;
            for (const std::string& component : {part.data_dir, model, press_of(run), fmt::format("{:.2f}", ratio),
                                                 std::string(run.first().question_seen == 1 ? "query_aware" : "")})
                if (!component.empty()) name += "__" + component;
            std::ranges::replace(name, '/', '_');
            const std::filesystem::path folder = unused_folder(name, used);
            files.push_back({folder / "predictions.csv", predictions_csv(run.task, rows, part, results)});
            files.push_back({folder / "metrics.json", metrics_json(run.task, rows, part)});
            files.push_back({folder / "config.yaml", config_yaml(run, part, ratio)});
        }
    }
    return files;
}

}  // namespace kvscope::results
