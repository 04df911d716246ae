#include "app/gui/figure/figure_export.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <imgui.h>

#include <cfloat>

#include "app/gui/figure/figure_source.h"

namespace kvscope::gui {
namespace {

namespace fs = std::filesystem;

}  // namespace

void FigureExport::start_one(const fs::path& file, const std::string& figure) {
    job_ = Job{.folder = {}, .file = file, .left = {figure}, .problems = {}, .left_out = {}};
}

void FigureExport::start_all(const fs::path& folder, std::vector<std::string> figures) {
    const size_t n = figures.size();
    job_ = Job{.folder = folder, .file = {}, .left = std::move(figures), .n_all = n, .problems = {}, .left_out = {}};
}

void FigureExport::go_on(Context& context, const figures::ExportOptions& options,
                         const std::function<std::optional<FigureRequest>(const std::string& figure)>& request,
                         const std::function<std::string(const std::string& figure)>& file_name) {
    if (!job_) return;
    Session& session = context.session;
    if (job_->left.empty()) {
        finish(context);
        return;
    }
    const std::string name = job_->left.front();
    const auto asked = request(name);
    if (!asked) {
        job_.reset();
        return;
    }
    const fs::path path = job_->folder.empty() ? job_->file : job_->folder / file_name(name);
    const auto answer = session.tasks.ask(written_, "", fmt::format("{} {} {}", n_jobs_, name, path.string()),
                                          [job = FigureJob(session, *asked), path, options]() -> Written {
                                              try {
                                                  fs::create_directories(path.parent_path());
                                                  figures::export_figure(job.exported(), path, options, true);
                                              } catch (const analysis::NothingToShow& nothing) {
                                                  return {nothing.what()};
                                              }
                                              return {};
                                          });
    if (!answer.current) return;
    if (!answer.error.empty())
        job_->problems.push_back(fmt::format("{}: {}", name, answer.error));
    else if (!answer.value->nothing.empty() && job_->folder.empty())
        job_->problems.push_back(answer.value->nothing);
    else if (!answer.value->nothing.empty())
        job_->left_out.push_back(fmt::format("{} ({})", name, answer.value->nothing));
    else
        ++job_->n_written;
    job_->left.erase(job_->left.begin());
}

void FigureExport::finish(Context& context) {
    const Job& done = *job_;
    if (!done.folder.empty()) {
        std::string text =
            fmt::format("{} of {} figures written into {}", done.n_written, done.n_all, done.folder.string());
        if (!done.left_out.empty()) text += fmt::format("; left out: {}", fmt::join(done.left_out, ", "));
        context.desk.notice(text, false);
    } else if (done.n_written > 0) {
        context.desk.notice(done.file.string() + " written", false);
    }
    for (const std::string& problem : done.problems) context.desk.notice(problem, true);
    ++n_jobs_;
    job_.reset();
}

void FigureExport::draw_progress() const {
    if (!job_) return;
    const auto done = static_cast<float>(job_->n_all - job_->left.size());
    ImGui::ProgressBar(done / static_cast<float>(job_->n_all), {-FLT_MIN, 0},
                       job_->left.empty() ? "" : job_->left.front().c_str());
}

}  // namespace kvscope::gui
