#include "app/gui/engine/what_if_decoding.h"

#include <fmt/format.h>

#include <cstdint>
#include <stdexcept>

namespace kvscope::gui {

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
