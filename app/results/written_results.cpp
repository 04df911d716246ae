#include "app/results/written_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "analysis/runs/row_settings.h"
#include "common/bounded_json.h"
#include "common/sha256.h"
#include "common/whole_file.h"
#include "trace/creation_time.h"
#include "trace/records/storable_text.h"

namespace kvscope::results {
namespace {

void add_runs(WrittenResults& results, const std::string& task, const std::vector<trace::ResultRow>& rows) {
    const auto settings = analysis::settings_of_rows(rows);
    std::map<size_t, WrittenRun> runs;  // by group
    for (size_t i = 0; i < rows.size(); ++i) {
        if (rows[i].status != trace::schema::run::status_complete) {
            ++results.n_failed;
            continue;
        }
        const bool is_full = rows[i].policy == full_policy;
        const std::string budget = is_full                            ? ""
                                   : rows[i].requested_budget.empty() ? settings.of(i).budget
                                                                      : rows[i].requested_budget.string();
        runs.try_emplace(settings.rows[i].group, WrittenRun{task, settings.of(i).setting, budget})
            .first->second.rows.push_back(&rows[i]);
    }
    for (auto& [group, run] : runs) results.runs.push_back(std::move(run));
}

}  // namespace

std::string WrittenResults::question(const trace::ResultRow& row) const {
    const auto prompt = prompts.find(row.prompt_hash);
    if (prompt != prompts.end()) return prompt->second.question;
    const auto found = questions.find({row.sample_id, row.question_seen != 0});
    return found == questions.end() ? "" : found->second;
}

WrittenResults results_to_write(const trace::Reader& reader) {
    WrittenResults results;
    results.generator = reader.generator();
    results.created = trace::time_of_utc(reader.created_utc()).value_or(0);
    for (int prompt = 0; prompt < reader.n_prompts(); ++prompt) {
        const trace::PromptAttributes& attributes = reader.prompt(prompt);
        results.prompts.emplace(sha256_of(trace::storable_text(attributes.text)), attributes);
    }
    results.questions = analysis::questions_of_samples(reader);
    std::vector<std::string> tasks = reader.result_tasks();
    if (tasks.empty()) tasks = {std::string(trace::schema::root::prompt_results)};
    for (const std::string& task : tasks) {
        try {
            const auto rows = reader.results(task);
            results.tables[task] = {rows.begin(), rows.end()};
        } catch (const std::out_of_range&) {
            continue;  // an unfinished trace without rows
        }
        add_runs(results, task, results.tables[task]);
    }
    if (results.runs.empty())
        throw std::runtime_error(
            fmt::format("{}: the trace has no results of complete runs; `kvscope eval` makes a trace with results",
                        reader.path().string()));
    return results;
}

void write_result_files(const std::vector<ResultFile>& files, const std::filesystem::path& folder, bool replace) {
    if (!replace)
        for (const ResultFile& file : files) refuse_existing(folder / file.path);
    for (const ResultFile& file : files) {
        const auto parent = (folder / file.path).parent_path();
        std::error_code error;
        std::filesystem::create_directories(parent, error);
        if (error)
            throw FileNotWritten(fmt::format("cannot create the folder {}: {}. Choose another output with -o",
                                             parent.string(), error.message()));
        write_whole_file(folder / file.path, file.text, replace);
    }
}

std::filesystem::path unused_folder(const std::string& name, std::map<std::string, int>& used) {
    const int n = used[name]++;
    return n == 0 ? std::filesystem::path(name) : std::filesystem::path(name) / std::to_string(n);
}

std::vector<std::string> answers_of(const trace::ResultRow& row) {
    std::vector<std::string> answers;
    const nlohmann::json list = bounded_json::parse_or_discard(row.answers_json);
    if (!list.is_array()) return answers;
    for (const nlohmann::json& answer : list)
        if (answer.is_string()) answers.push_back(answer.get<std::string>());
    return answers;
}

}  // namespace kvscope::results
