#include "app/gui/saved/file_opener.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <string>
#include <utility>

#include "app/gui/view_data/run_form.h"
#include "common/counted.h"

namespace kvscope::gui {

namespace {

std::string view_without_prompts(const trace::Reader& reader) {
    if (!reader.result_tasks().empty()) return "task_scores";
    if (reader.has_results(trace::schema::root::prompt_results)) return "report";
    return reader.has({}, trace::schema::model::spectrum_q) ? "spectrum" : "";
}

/// Returns "6 rows of niah" for the tables of tasks.
std::string tables_in_words(const trace::Reader& reader) {
    std::vector<std::string> tasks;
    for (const std::string& task : reader.result_tasks())
        tasks.push_back(fmt::format("{} of {}", counted(static_cast<int64_t>(reader.n_results(task)), "row"), task));
    return fmt::format("{}", fmt::join(tasks, ", "));
}

/// Writes what an opened trace contains into the log.
void log_contents(const Document& document) {
    const trace::Reader& reader = *document.reader();
    const std::string path = document.path().string();
    const int n = reader.n_prompts();
    if (n > 0 || reader.result_tasks().empty()) {
        const bool has_rows = n == 0 && reader.has_results(trace::schema::root::prompt_results);
        spdlog::info("{} opened: {}", path, has_rows ? "rows of results" : counted(n, "prompt"));
        return;
    }
    try {
        spdlog::info("{} opened: {}", path, tables_in_words(reader));
    } catch (const trace::TraceError& error) {
        spdlog::error("{}: {}", path, error.what());
    }
}

}  // namespace

void FileOpener::open(const std::vector<std::filesystem::path>& paths, bool at_once) {
    std::vector<std::filesystem::path> prompts;
    for (const auto& path : paths) {
        std::error_code error;
        if (path.extension() == workspace_extension) {
            if (std::filesystem::exists(path, error)) to_.settings.values().remember_trace(path);
            at_once ? to_.workspace.open_now(path) : to_.workspace.open(path);
            continue;
        }
        const bool is_model = path.extension() == ".gguf" || std::filesystem::exists(path / "config.json", error);
        if (is_model)
            open_model(path);
        else if (is_prompt_source(path))
            prompts.push_back(path);
        else
            open_trace(path);
    }
    if (prompts.empty() || take_prompts(prompts)) return;
    for (const auto& path : prompts) open_trace(path);
}

void FileOpener::open_trace(const std::filesystem::path& path) {
    if (path.extension() == workspace_extension) return open({path});
    try {
        const size_t n_open = to_.session.documents().size();
        Document& document = to_.session.open(path);
        if (to_.session.documents().size() > n_open) to_.sidecars.take_in(document);
        to_.settings.values().remember_trace(path);
        log_contents(document);
        const trace::Reader& reader = *document.file();
        if (reader.n_prompts() > 0)
            to_.views.end_alone();
        else if (shows_what_is_there_)
            wanted_view_ = view_without_prompts(reader);
    } catch (const std::exception& error) {
        to_.notices.add(error.what(), true);
    }
}

void FileOpener::open_model(const std::filesystem::path& path) {
    if (!to_.engine) {
        to_.notices.add(path.string() + " is a model, but this build of kvscope has no engine. Open a trace instead",
                        true);
        return;
    }
    to_.engine->load_model(path);
    wanted_model_ = path;
}

bool FileOpener::take_prompts(const std::vector<std::filesystem::path>& paths) {
    const ViewKind* kind = to_.engine ? find_view_kind("run") : nullptr;
    if (!kind) return false;
    if (to_.views.awaits_layout()) {
        wanted_prompts_ = paths;
        return true;
    }
    if (to_.session.documents().empty())
        to_.views.show_alone(*kind);  // the other views have no data
    else
        to_.views.show(*kind);
    if (to_.views.await_restoring()) {
        wanted_prompts_ = paths;
        return true;
    }
    OpenView* open = nullptr;
    for (const auto& view : to_.views.all())
        if (view->kind == kind && (!open || view.get() == to_.views.focused())) open = view.get();
    return open && open->view->take_files(paths);
}

void FileOpener::remember_loaded_model() {
    if (!wanted_model_.empty() && to_.engine->status().model_path == wanted_model_)
        to_.settings.values().remember_model(std::exchange(wanted_model_, {}));
}

void FileOpener::show_what_waits(bool was_built) {
    if (!was_built && !wanted_view_.empty()) {
        const ViewKind& kind = *find_view_kind(std::exchange(wanted_view_, {}));
        const auto& open = to_.session.documents();
        const bool has_prompts =
            std::ranges::any_of(open, [](const auto& one) { return one->reader()->n_prompts() > 0; });
        if (has_prompts)
            to_.views.show(kind);
        else
            to_.views.show_alone(kind);
    }
    if (!wanted_prompts_.empty()) take_prompts(std::exchange(wanted_prompts_, {}));
}

}  // namespace kvscope::gui
