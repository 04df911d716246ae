#include "app/gui/engine/training_display.h"

#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "app/program/engine/training_job.h"
#include "common/whole_file.h"

namespace kvscope::gui {
namespace {

class Telling final : public engine::Progress {
 public:
    Telling(engine::Progress& shown, std::function<void(const std::string&)> tell)
        : shown_(shown), tell_(std::move(tell)) {}
    void begin(std::string_view phase, int64_t steps, std::string_view unit) override {
        shown_.begin(phase, steps, unit);
    }
    void advance(int64_t done) override { shown_.advance(done); }
    void message(std::string_view text) override {
        shown_.message(text);
        tell_(std::string(text));
    }
    std::stop_token stop_token() const override { return shown_.stop_token(); }

 private:
    engine::Progress& shown_;
    std::function<void(const std::string&)> tell_;
};

program::TrainingJob training_job(const TrainingRequest& request) {
    program::TrainingJob job;
    job.texts = request.texts;
    job.n_tokens = request.n_tokens;
    job.options.ratio = request.ratio;
    job.by_descent = request.by_descent;
    job.descent.steps = request.steps;
    job.tuning.steps = request.tune_steps;
    if (request.tune_by_qk) job.tuning.loss = engine::EchoLoss::qk_kl;
    job.force = request.force;
    job.set_output(request.output);
    return job;
}

}  // namespace

void TrainingDisplay::begin(const TrainingRequest& request) {
    status_ = {};
    status_.output = request.output;
}

void TrainingDisplay::run(const engine::Model& model, const TrainingRequest& request, engine::Progress& progress,
                          const std::function<void(std::function<void()>)>& post) {
    Telling telling(progress,
                    [&](const std::string& text) { post([this, text] { status_.messages.push_back(text); }); });
    program::TrainingEvents events;
    events.on_step = [&](engine::EchoLoss loss, const engine::EchoStep& step) {
        post([this, loss, error = step.error] { stage_of(loss).errors.push_back(error); });
    };
    events.on_stage = [&](engine::EchoLoss loss, std::span<const engine::EchoStep> steps) {
        std::vector<double> errors;
        for (const auto& step : steps) errors.push_back(step.error);
        post([this, loss, errors] { stage_of(loss).errors = errors; });
    };
    events.write = [&](const std::string& bytes) {
        write_whole_file(request.output, bytes, request.force);
        post([this] { status_.is_done = true; });
    };
    program::train_echo_maps(model, training_job(request), telling, events);
}

TrainingStatus::Stage& TrainingDisplay::stage_of(engine::EchoLoss loss) {
    ++status_.stamp;
    const std::string name(engine::echo_loss_name(loss));
    for (auto& stage : status_.stages)
        if (stage.loss == name) return stage;
    return status_.stages.emplace_back(TrainingStatus::Stage{name, {}});
}

}  // namespace kvscope::gui
