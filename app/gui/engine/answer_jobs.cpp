#include "app/gui/engine/answer_jobs.h"

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <stdexcept>
#include <utility>

#include "analysis/tables/table_format.h"
#include "app/gui/session/session.h"
#include "common/stopped.h"

namespace kvscope::gui {

namespace {

std::string remark_on(const engine::RepeatedRun& again) {
    if (again.n_other == 0) return {};
    return fmt::format(
        "the cache was rebuilt and differs from the recorded cache in {} entries, because this machine computes "
        "differently from the machine that wrote the trace",
        analysis::format_count(again.n_other));
}

void make_again(QuestionJob& job, const engine::Model& model, engine::Progress& progress,
                const QuestionEvents& events) {
    std::vector<QuestionJob::Asked*> missing;
    std::vector<int> runs;
    bool lacks_answer = false;
    for (auto& asked : job.runs) {
        if (asked.cache && !asked.cache->is_of(model)) asked.cache.reset();  // the cache is of an older model
        if (asked.cache) continue;
        missing.push_back(&asked);
        runs.push_back(asked.run);
        lacks_answer = lacks_answer || job.reader->run(job.prompt, asked.run).output_text.empty();
    }
    if (missing.empty()) return;
    // If policies saw the question, a further question comes after the run's own answer.
    const bool needs_answers = lacks_answer && job.reader->prompt(job.prompt).query_aware;
    const auto repeated = engine::rerun_recorded_runs(model, *job.reader, job.prompt, runs, needs_answers, progress);
    for (size_t i = 0; i < missing.size(); ++i) {
        missing[i]->cache = repeated[i].cache;
        events.on_made_again(*missing[i], repeated[i]);
        events.on_change(missing[i]->answer, [remark = remark_on(repeated[i]), failed = !repeated[i].cache,
                                              message = repeated[i].record.message](FurtherAnswer& to) {
            to.remark = remark;
            if (!failed) return;
            to.finished = true;
            to.error = message;
        });
    }
}

void ask(QuestionJob& job, const engine::Model& model, engine::Progress& progress, const QuestionEvents& events) {
    std::vector<engine::Conversation*> caches;
    std::vector<int> answers;
    for (const auto& asked : job.runs) {
        if (!asked.cache) continue;
        caches.push_back(asked.cache.get());
        answers.push_back(asked.answer);
    }
    const auto recorded = engine::options_of_recorded_answers(*job.reader, job.prompt);
    const engine::QuestionOptions options{recorded.n_new, engine::sampling_of(recorded), recorded.ignore_eos};
    std::vector<std::vector<int32_t>> ids(caches.size());
    const auto replies =
        engine::ask_all_runs(model, caches, job.question, options, progress, [&](size_t i, int32_t id) {
            ids[i].push_back(id);
            events.on_change(answers[i], [text = model.answer_text(ids[i], progress.stop_token())](FurtherAnswer& to) {
                to.text = text;
            });
        });
    for (size_t i = 0; i < replies.size(); ++i) {
        events.on_change(answers[i], [text = replies[i].text, error = replies[i].error,
                                      remark = replies[i].remark](FurtherAnswer& to) {
            if (!remark.empty()) to.remark += (to.remark.empty() ? "" : "\n") + remark;
            to.text = text;
            to.error = error;
            to.finished = true;
        });
    }
}

}  // namespace

void finish_answers_with_error(const QuestionJob& job,
                               const std::function<void(int, std::function<void(FurtherAnswer&)>)>& on_change,
                               const std::string& error) {
    for (const auto& asked : job.runs) {
        on_change(asked.answer, [error](FurtherAnswer& to) {
            if (!to.finished) to.error = error;
            to.finished = true;
        });
    }
}

std::vector<QuestionJob> question_jobs(Session& session, const std::vector<RunKey>& runs, const std::string& question,
                                       const RunCaches& caches) {
    std::map<std::pair<int, int>, QuestionJob> by_prompt;
    for (const RunKey& run : runs) {
        Document& document = *session.document(run);
        QuestionJob& job = by_prompt[{run.document, run.prompt}];
        job.document = run.document;
        job.prompt = run.prompt;
        job.reader = document.reader();
        job.question = question;
        job.runs.push_back({session.at(run).run, document.add_further_answer(run, question),
                            RunCaches::name_of(document, run), caches.find(session, run)});
    }
    std::vector<QuestionJob> jobs;
    for (auto& [place, job] : by_prompt) jobs.push_back(std::move(job));
    return jobs;
}

void change_answer(Session& session, int document, int answer, const std::function<void(FurtherAnswer&)>& change) {
    Document* of = session.document(document);
    FurtherAnswer* to = of ? of->further_answer(answer) : nullptr;
    if (!to) return;
    change(*to);
    if (to->finished) of->annotations_changed = true;
}

void answer_question_job(QuestionJob& job, const std::function<const engine::Model&()>& model,
                         engine::Progress& progress, const QuestionEvents& events) {
    try {
        const engine::Model& loaded = model();
        make_again(job, loaded, progress, events);
        ask(job, loaded, progress, events);
    } catch (const Stopped&) {
        finish_answers_with_error(job, events.on_change, "stopped");
        throw;
    } catch (const std::exception& error) {
        finish_answers_with_error(job, events.on_change, error.what());
        throw;
    }
}

std::vector<DecodingJob> decoding_jobs(const Session& session, const std::vector<RunKey>& runs) {
    std::map<std::pair<int, int>, DecodingJob> by_prompt;
    for (const RunKey& run : runs) {
        if (!session.exists(run) || !session.document(run)->is_what_if(run.run)) continue;
        const Document& document = *session.document(run);
        DecodingJob& job = by_prompt[{run.document, run.prompt}];
        job.prompt = run.prompt;
        job.reader = document.reader();
        job.what_ifs.push_back({session.at(run).run, run, RunCaches::name_of(document, run)});
    }
    std::vector<DecodingJob> jobs;
    for (auto& [place, job] : by_prompt) jobs.push_back(std::move(job));
    return jobs;
}

void decode_what_ifs(const DecodingJob& job, const engine::Model& model, engine::Progress& progress,
                     const DecodingEvents& events) {
    std::vector<int> runs;
    for (const auto& what_if : job.what_ifs) runs.push_back(what_if.run);
    std::vector<std::vector<int32_t>> ids(runs.size());
    const auto repeated =
        engine::rerun_recorded_runs(model, *job.reader, job.prompt, runs, true, progress, [&](size_t i, int32_t id) {
            ids[i].push_back(id);
            events.on_text(job.what_ifs[i], job.reader->run(job.prompt, runs[i]).label,
                           model.answer_text(ids[i], progress.stop_token()));
        });
    std::string failed;
    for (size_t i = 0; i < runs.size(); ++i) {
        if (repeated[i].cache) {
            events.on_decoded(job.what_ifs[i], repeated[i]);
            continue;
        }
        const std::string& why = repeated[i].record.message;
        failed += fmt::format("{}{}: {}", failed.empty() ? "" : "\n", job.what_ifs[i].name,
                              why.empty() ? "it failed at another question with the same context" : why);
    }
    if (!failed.empty()) throw std::runtime_error(failed);
}

}  // namespace kvscope::gui
