#include "app/gui/engine/run_output_files.h"

#include <algorithm>
#include <system_error>

#include "app/gui/session/whole_path.h"
#include "app/gui/view_data/run_form.h"

namespace kvscope::gui {

namespace fs = std::filesystem;

std::shared_ptr<RunOutput> RunOutputs::take(const fs::path& path) {
    auto output = std::make_shared<RunOutput>(absolute_path(path).lexically_normal());
    std::erase_if(taken_, [](const auto& of_job) { return of_job.expired(); });
    taken_.push_back(output);
    return output;
}

bool RunOutputs::is_taken(const fs::path& path) const {
    const fs::path whole = absolute_path(path).lexically_normal();
    return std::ranges::any_of(taken_, [&](const auto& output) {
        const auto taken = output.lock();
        return taken && !taken->is_paused && taken->path == whole;
    });
}

fs::path RunOutputs::place_for(const RunRequest& request) {
    const fs::path begun = continued_output(request);
    fs::path output =
        begun.empty() ? find_free_output_path([this](const fs::path& path) { return is_taken(path); }) : begun;
    begun_ = Begun{request, output};
    return output;
}

fs::path RunOutputs::continued_output(const RunRequest& request) const {
    std::error_code error;
    const bool is_begun = request.output.empty() && begun_ && begun_->request == request && !is_taken(begun_->output) &&
                          fs::exists(begun_->output.string() + ".part", error);
    return is_begun ? begun_->output : fs::path();
}

}  // namespace kvscope::gui
