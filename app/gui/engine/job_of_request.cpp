#include "app/gui/engine/job_of_request.h"

namespace kvscope::gui {

program::RunJob make_run_job(const RunRequest& request) {
    program::RunJob job;
    job.model = request.model;
    job.policies = request.policies;
    job.budgets = {request.budgets};
    static_cast<RunOptions&>(job.experiment) = request.options;
    if (request.task)
        program::set_task(job, *request.task->task, request.task->values);
    else
        job.prompts.push_back({request.name, request.context, request.asked_questions()});
    job.output = request.output;
    job.force = request.force;
    job.requires_files = false;  // the form has already said which runs will fail
    return job;
}

}  // namespace kvscope::gui
