#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/experiment.h"
#include "engine/prefill/prompt.h"
#include "trace/records/records.h"
#include "trace/writer.h"

namespace kvscope::engine {

/// Passes finished prompts and runs to the trace, if any, and to the experiment's callbacks.
class ResultWriter {
 public:
    ResultWriter(const Experiment& owner, trace::Writer* writer, size_t n_plans, Timings& timings)
        : owner_(owner), writer_(writer), n_plans_(static_cast<int>(n_plans)), timings_(timings) {}

    void write(const trace::ModelRecord& record);
    void write(int prompt, const trace::PromptRecord& record);
    void write(int prompt, int run, const trace::RunRecord& record);

    [[nodiscard]] bool has_model() const { return !writer_ || writer_->has_model(); }
    [[nodiscard]] bool has_run(int prompt, int run) const { return writer_ && writer_->has_run(prompt, run); }
    [[nodiscard]] bool is_finished(int prompt) const;
    [[nodiscard]] int n_failed() const { return n_failed_; }

 private:
    const Experiment& owner_;
    trace::Writer* writer_;
    int n_plans_;
    Timings& timings_;
    int n_failed_ = 0;
};

}  // namespace kvscope::engine
