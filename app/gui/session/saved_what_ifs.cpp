#include "app/gui/session/saved_what_ifs.h"

#include <fmt/format.h>

#include <stdexcept>
#include <type_traits>

#include "analysis/what_if/what_if.h"
#include "common/json.h"

namespace kvscope::gui {
namespace {

trace::RunRecord make_again(const trace::Reader& reader, int run, const KeptWhatIf& saved) {
    const analysis::WhatIf what_if(reader, saved.prompt, run);
    const auto values = policies::ParameterValues::from_json(what_if.definition().parameters, saved.parameters_json);
    const auto lacking = what_if.needs_prefill(values, saved.budget);
    if (!lacking.empty())
        throw policies::ParameterError(
            fmt::format("{} changes the scores: repeat the prefill, then set the parameter again", lacking.front()));
    trace::RunRecord record = what_if(values, saved.budget);
    if (saved.answer_json.empty()) return record;
    const auto answer = nlohmann::json::parse(saved.answer_json);
    const auto take = [&](const char* name, auto& into) {
        if (answer.contains(name)) into = answer[name].get<std::decay_t<decltype(into)>>();
    };
    take("text", record.output_text);
    take("ids", record.output_ids);
    take("step_kl", record.step_kl);
    take("step_agreement", record.step_agreement);
    const size_t n = record.output_ids.size();
    const bool fits = (record.step_kl.empty() || record.step_kl.size() == n) &&
                      (record.step_agreement.empty() || record.step_agreement.size() == n);
    if (!fits) throw std::invalid_argument("the saved answer has different numbers of steps and tokens");
    return record;
}

}  // namespace

void restore_what_ifs(Session& session, const std::function<void(const std::string&)>& notice) {
    for (const auto& document : session.documents()) {
        for (size_t i = 0; i < document->saved_what_ifs.size(); ++i) {
            KeptWhatIf& saved = document->saved_what_ifs[i];
            if (saved.tried) continue;
            const auto run = document->run_called(saved.prompt, saved.run_number, saved.run);
            const std::string name = fmt::format("the kept what-if of {} with a budget of {}", saved.run, saved.budget);
            if (!run) {
                saved.tried = true;
                notice(fmt::format("{}: {}: the trace does not contain this run", document->name(), name));
                continue;
            }
            static const TaskSlot<trace::RunRecord> slot;
            const auto answer = session.tasks.ask(
                slot,
                fmt::format("{} {} {} {}", document->id(), saved.prompt, saved.run_number,
                            saved.parameters_json + std::to_string(saved.budget) + saved.answer_json),
                document->stamp(),
                [at = session.at({document->id(), saved.prompt, *run}), saved](const std::stop_token& stop) {
                    return make_again(at.reader->with_stop(stop), at.run, saved);
                });
            if (!answer.current) continue;
            if (!answer.error.empty()) {
                saved.tried = true;
                notice(fmt::format("{}: {}: {}", document->name(), name, answer.error));
                continue;
            }
            const int prompt = saved.prompt;
            const std::string unknown_json = saved.unknown_json;
            document->saved_what_ifs.erase(document->saved_what_ifs.begin() + static_cast<std::ptrdiff_t>(i--));
            const bool had_changes = document->annotations_changed;
            document->keep_run(document->add_run(prompt, *answer.value, *run), unknown_json);
            document->annotations_changed = had_changes;
        }
    }
}

}  // namespace kvscope::gui
