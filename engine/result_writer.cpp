#include "engine/result_writer.h"

#include "engine/common/stopwatch.h"

namespace kvscope::engine {

void ResultWriter::write(const trace::ModelRecord& record) {
    if (!has_model()) writer_->write_model(record);
}

void ResultWriter::write(int prompt, const trace::PromptRecord& record) {
    if (!writer_ || writer_->has_prompt(prompt)) return;
    const Stopwatch watch;
    writer_->write_prompt(prompt, record);
    timings_.write_s += watch.seconds();
}

void ResultWriter::write(int prompt, int run, const trace::RunRecord& record) {
    const Stopwatch watch;
    if (writer_) writer_->write_run(prompt, run, record);
    timings_.write_s += watch.seconds();
    ++timings_.n_runs;
    if (record.status == trace::schema::run::status_failed) ++n_failed_;
    if (owner_.on_run) owner_.on_run(prompt, run, record);
}

bool ResultWriter::is_finished(int prompt) const {
    if (!writer_ || !writer_->has_prompt(prompt)) return false;
    for (int run = 0; run < n_plans_; ++run) {
        if (!writer_->has_run(prompt, run)) return false;
    }
    return true;
}

}  // namespace kvscope::engine
