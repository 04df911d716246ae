#include "app/gui/engine/job_of_request.h"

namespace kvscope::gui {

program::RunJob job_of(const RunRequest& request) {
    program::RunJob job;
    job.model = request.model;
    job.prompts.push_back({request.name, request.context, {}});
    job.prompts.back().questions = request.asked_questions();
    job.query_aware = request.query_aware;
    job.use_template = request.use_template;
    job.policies = request.policies;
    job.budgets = {request.budgets};
    const RunOptions& options = request.options;
    job.experiment.n_new = request.n_new;
    job.experiment.sampling = {options.temperature, options.top_p, options.sampling_seed};
    job.experiment.seed = options.seed;
    job.experiment.isolated = options.isolated;
    job.experiment.ignore_eos = options.ignore_eos;
    job.experiment.window = options.window;
    job.experiment.alignment = options.alignment;
    job.output = request.output;
    job.force = request.force;
    return job;
}

}  // namespace kvscope::gui
