#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/gui/session/run_selection.h"
#include "engine/common/progress.h"
#include "engine/model/model.h"
#include "engine/repeat.h"
#include "trace/reader.h"

namespace kvscope::gui {

/// What-ifs of one prompt that are made as runs.
struct DecodingJob {
    struct WhatIf {
        int run;  ///< of the reader
        RunKey key;
        std::string name;  ///< RunCaches::name_of
    };
    int prompt = 0;
    std::shared_ptr<const trace::Reader> reader;
    std::vector<WhatIf> what_ifs;
};

/// What a decoding job tells on its way; called on the engine's thread.
struct DecodingEvents {
    std::function<void(const DecodingJob::WhatIf&, const std::string& label, const std::string& text)> on_text;
    std::function<void(const DecodingJob::WhatIf&, const engine::RepeatedRun&)> on_decoded;
};

/// Decodes all of them as one batch behind one prefill.
/// @throws what engine::repeat_runs throws; std::runtime_error that names those that failed, when the others are told
void decode(const DecodingJob& job, const engine::Model& model, engine::Progress& progress,
            const DecodingEvents& events);

}  // namespace kvscope::gui
