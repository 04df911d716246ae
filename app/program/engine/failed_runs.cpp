#include "app/program/engine/failed_runs.h"

#include <fmt/format.h>

#include <algorithm>

namespace kvscope::program {

void FailedRuns::report(int prompt, int run, const std::string& name, const trace::RunAttributes& attributes) {
    if (attributes.status != trace::schema::run::status_failed || !reported_.emplace(prompt, run).second) return;
    const auto& plans = prepared_.plans;
    const auto place = static_cast<size_t>(run);
    warn_(fmt::format("{}: the run {} failed: {}", name, place < plans.size() ? plans[place].asked() : attributes.label,
                      attributes.message));
}

void FailedRuns::report(const std::string& sample, std::span<const trace::ResultRow> rows) {
    for (size_t i = 0; i < rows.size(); ++i) {
        if (i < prepared_.plans.size() && rows[i].status != trace::schema::run::status_complete &&
            reported_of_samples_.emplace(i, rows[i].status).second)
            warn_(fmt::format("{}, {} {}", sample, prepared_.plans[i].asked(), rows[i].status));
    }
}

int FailedRuns::report_all(const trace::Reader& reader) {
    if (prepared_.job.task) return report_all_samples(reader.results(prepared_.job.task->name));
    if (prepared_.job.experiment.stores_only_rows())
        return report_all_samples(reader.results(trace::schema::root::prompt_results));
    int n_runs = 0;
    for (int prompt = 0; prompt < reader.n_prompts(); ++prompt) {
        n_runs += reader.n_runs(prompt);
        for (int run = 0; run < reader.n_runs(prompt); ++run)
            report(reader.prompt_number(prompt), reader.run_number(prompt, run), reader.prompt(prompt).name,
                   reader.run(prompt, run));
    }
    const auto n_failed = static_cast<int>(reported_.size());
    if (n_failed > 0)
        warn_(
            fmt::format("{} of {} runs failed. Failed runs count as finished and are not repeated", n_failed, n_runs));
    return n_failed;
}

int FailedRuns::report_all_samples(std::span<const trace::ResultRow> rows) {
    const auto n_failed =
        std::ranges::count_if(rows, [](const auto& row) { return row.status != trace::schema::run::status_complete; });
    while (!rows.empty()) {
        const auto end =
            std::ranges::find_if(rows, [&](const auto& row) { return row.sample_id != rows.front().sample_id; });
        const auto n = static_cast<size_t>(end - rows.begin());
        report(rows.front().sample_id, rows.first(n));
        rows = rows.subspan(n);
    }
    return static_cast<int>(n_failed);
}

}  // namespace kvscope::program
