#include "app/gui/figure/figure_export.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <imgui.h>

#include <algorithm>
#include <cfloat>

#include "app/figures/export_figure.h"
#include "app/gui/figure/export_dialog.h"
#include "app/gui/figure/figure_job.h"
#include "common/stopped.h"
#include "common/whole_file.h"

namespace kvscope::gui {
namespace {

namespace fs = std::filesystem;

constexpr size_t most_problems_told = 3;

std::function<figures::Exported(const std::stop_token&)> what_is_exported(const Session& session,
                                                                          const std::optional<FigureRequest>& request,
                                                                          std::string nothing) {
    try {
        if (request)
            return [job = FigureJob(session, *request)](const std::stop_token& stop) {
                return job.with_stop(stop).exported();
            };
    } catch (const analysis::NothingToShow& none) {
        nothing = none.what();
    }
    const auto fail = [nothing] { throw analysis::NothingToShow(nothing); };
    return [fail](const std::stop_token&) {
        return figures::Exported{[fail]() -> analysis::Figure { return fail(), analysis::Figure{}; },
                                 [fail]() -> analysis::Table { return fail(), analysis::Table{}; }, fail};
    };
}

void make_folder(const fs::path& folder) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) throw FileNotWritten(fmt::format("{} cannot be created: {}", folder.string(), error.message()));
}

}  // namespace

/// Result of one figure, written by the worker before the main thread reads it.
struct FigureExport::Result {
    std::vector<fs::path> written;
    std::string nothing;
    bool is_cancelled = false;
};

/// Only the main thread uses the members, except `stop`.
struct FigureExport::Job {
    fs::path folder;  ///< folder for all figures; empty for a single figure
    std::vector<std::string> names;
    Notice notice;
    std::stop_source stop{};
    size_t n_ended = 0;
    std::vector<std::vector<fs::path>> written{};  ///< files of each exported figure
    std::vector<std::string> left_out{};           ///< figures without data, with the reason
    std::vector<std::string> problems{};
    bool is_cancelled = false;

    void end_one(const Result& result, const std::string& problem) {
        const std::string& name = names[n_ended++];
        if (result.is_cancelled)
            is_cancelled = true;
        else if (!problem.empty())
            problems.push_back(folder.empty() ? problem : name + ": " + problem);
        else if (!result.written.empty())
            written.push_back(result.written);
        else if (folder.empty())
            problems.push_back(result.nothing);
        else
            left_out.push_back(fmt::format("{} ({})", name, result.nothing));
        if (n_ended == names.size()) tell();
    }

    void tell() const {
        if (!folder.empty()) {
            std::string text = fmt::format("{}{} of {} figures written to {}", is_cancelled ? "Export cancelled: " : "",
                                           written.size(), names.size(), folder.string());
            if (!left_out.empty()) text += fmt::format("; omitted: {}", fmt::join(left_out, ", "));
            notice(text, false);
        } else if (!written.empty()) {
            notice(describe_written_files(written.front()), false);
        } else if (is_cancelled) {
            notice("Export cancelled: 0 of 1 figures written", false);
        }
        const size_t n_told = std::min(problems.size(), most_problems_told);
        for (size_t i = 0; i < n_told; ++i) notice(problems[i], true);
        if (problems.size() > n_told)
            notice(fmt::format("{} other figures were not written either", problems.size() - n_told), true);
    }
};

FigureForFile::FigureForFile(const Session& session, const analysis::FigureDefinition& definition,
                             const std::optional<FigureRequest>& request, const std::string& nothing, std::string name)
    : figure(definition.name),
      file_name(std::move(name)),
      may_have_pages(definition.may_have_pages),
      what(what_is_exported(session, request, nothing)) {}

void FigureExport::ask_for_file(Tasks& tasks, FileDialog& files, const FigureForFile& figure,
                                const figures::ExportOptions& options, const Notice& notice,
                                const LifetimeWatch& asker) {
    FileDialog::Question question;
    question.kind = FileDialog::Kind::save;
    question.title = "Export this figure";
    question.suggestion = figure.file_name;
    question.refusal = [](const fs::path& path) { return problem_with_ending(path, true); };
    question.objection = [may_have_pages = figure.may_have_pages](const fs::path& path) {
        return overwrite_question(figures::files_to_replace(path, may_have_pages));
    };
    question.answer = [this, &tasks, figure, options, notice](const fs::path& path) {
        start(tasks, {}, {path}, {figure}, options, notice);
    };
    question.asker = asker;
    files.ask(std::move(question));
}

void FigureExport::ask_for_folder(Tasks& tasks, FileDialog& files, const std::string& suggestion,
                                  const std::vector<FigureForFile>& figures, const figures::ExportOptions& options,
                                  const Notice& notice, const LifetimeWatch& asker) {
    FileDialog::Question question;
    question.kind = FileDialog::Kind::folder;
    question.title = "Export all figures to a folder";
    question.suggestion = suggestion;
    question.objection = [figures](const fs::path& folder) -> std::string {
        const auto there = std::ranges::count_if(figures, [&](const FigureForFile& figure) {
            return !figures::files_to_replace(folder / figure.file_name, figure.may_have_pages).empty();
        });
        return there == 0 ? "" : fmt::format("{} of the figures already exist", there);
    };
    question.answer = [this, &tasks, figures, options, notice](const fs::path& folder) {
        std::vector<fs::path> paths;
        for (const FigureForFile& figure : figures) paths.push_back(folder / figure.file_name);
        start(tasks, folder, std::move(paths), figures, options, notice);
    };
    question.asker = asker;
    files.ask(std::move(question));
}

void FigureExport::start(Tasks& tasks, const fs::path& folder, std::vector<fs::path> paths,
                         const std::vector<FigureForFile>& figures, const figures::ExportOptions& options,
                         const Notice& notice) {
    job_ = std::make_shared<Job>(Job{.folder = folder, .names = {}, .notice = notice});
    for (const FigureForFile& figure : figures) job_->names.push_back(figure.figure);
    for (size_t i = 0; i < figures.size(); ++i) {
        const auto result = std::make_shared<Result>();
        const auto confirmed = figures::files_to_replace(paths[i], figures[i].may_have_pages);
        tasks.once(
            [result, what = figures[i].what, path = paths[i], options, confirmed, stop = job_->stop.get_token()] {
                try {
                    throw_if_stopped(stop);
                    make_folder(path.parent_path());
                    result->written = write_exported(what(stop), path, options, confirmed);
                } catch (const analysis::NothingToShow& nothing) {
                    result->nothing = nothing.what();
                } catch (const Stopped&) {
                    result->is_cancelled = true;
                }
                return std::string();
            },
            [job = job_, result](const std::string& said, bool is_error) {
                job->end_one(*result, is_error ? said : "");
            });
    }
}

bool FigureExport::is_running() const { return job_ && job_->n_ended < job_->names.size(); }

void FigureExport::draw_progress() {
    if (!is_running()) return;
    ImGui::BeginDisabled(job_->stop.stop_requested());
    if (ImGui::Button("Cancel##figure export")) job_->stop.request_stop();
    ImGui::EndDisabled();
    ImGui::SetItemTooltip("Stops the export. Figures already written are kept.");
    ImGui::SameLine();
    const float share = static_cast<float>(job_->n_ended) / static_cast<float>(job_->names.size());
    ImGui::ProgressBar(share, {-FLT_MIN, 0}, job_->names[job_->n_ended].c_str());
}

}  // namespace kvscope::gui
