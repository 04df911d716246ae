#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/gui/session/selection.h"
#include "engine/common/progress.h"
#include "engine/model/model.h"
#include "engine/rerun_recorded_runs.h"
#include "trace/reader.h"

namespace kvscope::gui {

struct DecodingJob {
    struct WhatIf {
        int run;  ///< index in the reader
        RunKey key;
        std::string name;  ///< see RunCaches::name_of()
    };
    int prompt = 0;
    std::shared_ptr<const trace::Reader> reader;
    std::vector<WhatIf> what_ifs;
};

/// Callbacks of decode_what_ifs(), called on the engine's thread.
struct DecodingEvents {
    std::function<void(const DecodingJob::WhatIf&, const std::string& label, const std::string& text)> on_text;
    std::function<void(const DecodingJob::WhatIf&, const engine::RepeatedRun&)> on_decoded;
};

/// Decodes what-ifs as one batch. Throws like engine::rerun_recorded_runs, or std::runtime_error with names of failed
/// what-ifs.
void decode_what_ifs(const DecodingJob& job, const engine::Model& model, engine::Progress& progress,
                     const DecodingEvents& events);

}  // namespace kvscope::gui
