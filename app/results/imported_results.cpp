#include "app/results/imported_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <system_error>
#include <tuple>
#include <utility>

#include "common/file_text.h"
#include "common/full_policy.h"
#include "common/json.h"
#include "common/sha256.h"

namespace kvscope::results {
namespace {

namespace fs = std::filesystem;

/// Files of other programs below the given paths, in order.
struct FoundFiles {
    std::set<fs::path> kvpress;  ///< folders
    std::set<fs::path> lm_eval;  ///< results_*.json
    std::set<fs::path> samples;  ///< samples_*.jsonl

    [[nodiscard]] bool empty() const { return kvpress.empty() && lm_eval.empty() && samples.empty(); }
};

void classify(const fs::path& file, FoundFiles& found) {
    const std::string name = file.filename().string();
    const auto is_named = [&](std::string_view prefix, std::string_view extension) {
        return name.starts_with(prefix) && file.extension() == extension;
    };
    if (name == "predictions.csv" || name == "metrics.json" || name == "config.yaml")
        found.kvpress.insert(file.parent_path());
    else if (is_named("results_", ".json"))
        found.lm_eval.insert(file);
    else if (is_named("samples_", ".jsonl"))
        found.samples.insert(file);
}

FoundFiles find_files(const fs::path& path) {
    FoundFiles found;
    std::error_code error;
    if (!fs::is_directory(path, error)) {
        if (!fs::exists(path, error)) throw UnusableFile(path.string() + " does not exist");
        classify(path, found);
        return found;
    }
    auto entry = fs::recursive_directory_iterator(path, fs::directory_options::skip_permission_denied, error);
    for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error))
        if (entry->is_regular_file(error)) classify(entry->path(), found);
    if (error) throw UnusableFile(fmt::format("cannot read {}: {}", path.string(), error.message()));
    // A config.yaml alone may belong to another program.
    std::erase_if(found.kvpress, [&](const fs::path& folder) {
        return !fs::exists(folder / "predictions.csv", error) && !fs::exists(folder / "metrics.json", error);
    });
    return found;
}

/// Removes samples files whose results file was found.
void report_samples_alone(const FoundFiles& found, Imported& imported) {
    for (const fs::path& samples : found.samples) {
        const std::string stem = samples.stem().string();
        const size_t before_time = stem.rfind('_');
        const fs::path results = samples.parent_path() / ("results" + stem.substr(before_time) + ".json");
        if (found.lm_eval.contains(results)) continue;
        imported.left_out.push_back(fmt::format(
            "{}: expected lm-eval's {} in the same folder, found {}", samples.string(), results.filename().string(),
            fs::exists(results) ? "it, but it is not named: name it instead" : "no such file. Copy it, too"));
    }
}

template <class Read>
void read_unless_unusable(Imported& imported, Read read) {
    try {
        read();
    } catch (const UnusableFile& error) {
        imported.left_out.emplace_back(error.what());
    }
}

/// Orders runs: the full run first, then by policy, budget and parameters.
auto place_of_run(const trace::ResultRow& row) {
    return std::tuple(row.policy != full_policy, row.policy, row.requested_budget, row.parameters_json);
}

/// Rows of one model and origin, among which runs are compared.
using Series = std::tuple<std::string, std::string, std::string, std::int64_t>;

Series series_of(const trace::ResultRow& row) { return {row.model, row.source, row.dtype, row.question_seen}; }

/// Name of a sample in its series. Folders with equal names can contain other data.
std::string key_of_sample(const trace::ResultRow& row) { return row.sample_id + "\n" + row.answers_json; }

/// Sorts the rows of a table, and numbers repeated runs.
std::vector<trace::ResultRow> in_order(std::vector<trace::ResultRow> rows) {
    // Samples have the order of the first file of their series.
    std::map<std::pair<Series, std::string>, size_t> samples;
    std::vector<size_t> numbers, order;
    for (const trace::ResultRow& row : rows) {
        order.push_back(order.size());
        numbers.push_back(samples.try_emplace({series_of(row), key_of_sample(row)}, samples.size()).first->second);
    }
    std::ranges::stable_sort(
        order, {}, [&](size_t i) { return std::tuple(series_of(rows[i]), numbers[i], place_of_run(rows[i])); });
    std::vector<trace::ResultRow> sorted;
    std::optional<size_t> before;
    for (const size_t i : order) {
        const bool is_repeated =
            before && numbers[*before] == numbers[i] && place_of_run(sorted.back()) == place_of_run(rows[i]);
        const std::int64_t repeat = is_repeated ? sorted.back().repeat + 1 : 0;
        sorted.push_back(std::move(rows[i]));
        sorted.back().repeat = repeat;
        before = i;
    }
    return sorted;
}

}  // namespace

void SampleProblems::add(const std::string& problem) {
    if (n_++ == 0) first_ = problem;
}

std::string SampleProblems::text(const char* parts) const {
    return n_ > 1 ? fmt::format("{}. {} more {} have problems", first_, n_ - 1, parts) : first_;
}

std::string checked_hash(const std::string& hash, const char* key) {
    const bool is_hash =
        hash.size() == sha256_of("").size() && hash.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (hash.empty() || is_hash) return hash;
    throw UnusableFile(fmt::format(
        "expected 64 lower-case hexadecimal digits or nothing as \"{}\", found {} bytes: {}. Export the results again",
        key, hash.size(),
        nlohmann::json(hash.substr(0, 40)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)));
}

std::string read_result_file(const fs::path& file, Imported& imported) {
    std::error_code error;
    if (!fs::exists(file, error))
        throw UnusableFile(file.string() + ": expected this file, found none. Copy it from where it was written");
    try {
        std::string text = fs::is_regular_file(file, error) ? file_text(file) : "";
        imported.digests[file.string()] = sha256_of(text);
        return text;
    } catch (const std::system_error& failure) {
        throw UnusableFile(fmt::format("cannot read {}: {}", file.string(), failure.code().message()));
    }
}

Imported read_results(const std::vector<fs::path>& paths, const std::string& metric) {
    Imported imported;
    FoundFiles all;
    for (const fs::path& path : paths)
        read_unless_unusable(imported, [&] {
            FoundFiles found = find_files(path);
            if (found.empty())
                throw UnusableFile(
                    fmt::format("{}: expected kvpress's predictions.csv, or lm-eval's results_<time>.json with "
                                "samples_<task>_<time>.jsonl, found neither",
                                path.string()));
            all.kvpress.merge(found.kvpress);
            all.lm_eval.merge(found.lm_eval);
            all.samples.merge(found.samples);
        });
    for (const fs::path& folder : all.kvpress)
        read_unless_unusable(imported, [&] { read_kvpress_folder(folder, imported); });
    for (const fs::path& file : all.lm_eval)
        read_unless_unusable(imported, [&] { read_lm_eval_file(file, metric, imported); });
    report_samples_alone(all, imported);
    if (imported.runs.empty()) {
        std::string message = imported.left_out.empty() ? "expected results, found none" : imported.left_out.front();
        if (imported.left_out.size() > 1) message += fmt::format("; {} more problems", imported.left_out.size() - 1);
        throw UnusableFile(message);
    }
    return imported;
}

std::map<std::string, std::vector<trace::ResultRow>> tables_of_results(const Imported& imported) {
    std::map<std::string, std::vector<trace::ResultRow>> tables;
    for (const ImportedRun& run : imported.runs) {
        auto& rows = tables[run.task];
        rows.insert(rows.end(), run.rows.begin(), run.rows.end());
    }
    for (auto& [task, rows] : tables) rows = in_order(std::move(rows));
    return tables;
}

}  // namespace kvscope::results
