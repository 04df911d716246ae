#include "app/gui/saved/recent_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "common/stopped.h"
#include "common/utf8.h"
#include "trace/part_folder.h"
#include "trace/reader.h"

namespace kvscope::gui {
namespace {

namespace fs = std::filesystem;

constexpr double seconds_between_looks = 2;

RecentFile looked_up(const fs::path& path, bool is_trace) {
    std::error_code error;
    if (path.extension() == ".part") {
        if (fs::exists(path, error)) return {path, RecentFile::State::unfinished};
        const fs::path whole = fs::path(path).replace_extension();  // the finished trace, if it exists
        return {fs::exists(whole, error) ? whole : path,
                fs::exists(whole, error) ? RecentFile::State::there : RecentFile::State::gone};
    }
    if (fs::exists(path, error)) return {path, RecentFile::State::there};
    const bool is_begun = is_trace && fs::is_directory(trace::part_folder_of(path), error);
    return {path, is_begun ? RecentFile::State::unfinished : RecentFile::State::gone};
}

/// Adds a file unless `files` contains it. An unfinished trace may be listed under its folder's name or its final name.
void add_once(std::vector<RecentFile>& files, RecentFile file) {
    const auto name_of = [](const RecentFile& of) {
        return of.state == RecentFile::State::unfinished && of.path.extension() != ".part"
                   ? trace::part_folder_of(of.path)
                   : of.path;
    };
    const bool is_known =
        std::ranges::any_of(files, [&](const RecentFile& other) { return name_of(other) == name_of(file); });
    if (!is_known) files.push_back(std::move(file));
}

std::string first_characters(const std::string& text, size_t n) {
    size_t at = 0;
    for (size_t i = 0; i < n && at < text.size(); ++i) at += decode_utf8_character(text, at).bytes;
    return at < text.size() ? text.substr(0, at) + "…" : text;
}

/// Describes a trace, e.g. "2026-11-28 05:22 · What is the trace? · snapkv, h2o".
std::string contents_of_trace(const fs::path& path, const std::stop_token& stop) {
    constexpr size_t most_policies = 4, most_words = 48;
    const trace::Reader reader(path, stop);
    std::string date = reader.created_utc().substr(0, 16);
    std::ranges::replace(date, 'T', ' ');
    std::vector<std::string> parts{date};
    if (reader.n_prompts() > 0) {
        const auto& prompt = reader.prompt(0);
        const std::string& words = prompt.question.empty() ? prompt.name : prompt.question;
        parts.push_back(first_characters(words.substr(0, words.find('\n')), most_words));
        std::vector<std::string> policies;
        for (const auto& run : reader.runs(0))
            if (!run.is_full() && std::ranges::find(policies, run.policy) == policies.end())
                policies.push_back(run.policy);
        const bool has_more = policies.size() > most_policies;
        policies.resize(std::min(policies.size(), most_policies));
        parts.push_back(fmt::format("{}{}", fmt::join(policies, ", "), has_more ? ", …" : ""));
    }
    for (const auto& task : reader.result_tasks()) parts.push_back("scores of " + task);
    std::erase(parts, "");
    return fmt::format("{}", fmt::join(parts, " · "));
}

}  // namespace

std::string RecentFiles::contents_of(const RecentFile& file) const {
    if (file.state == RecentFile::State::gone) return {};
    if (file.path.extension() == workspace_extension) return "workspace";
    if (!tasks_) return {};
    std::error_code error;
    const auto written = fs::last_write_time(file.path, error);
    const std::string stamp = error ? "" : std::to_string(written.time_since_epoch().count());
    const fs::path path = file.state == RecentFile::State::unfinished && file.path.extension() != ".part"
                              ? trace::part_folder_of(file.path)
                              : file.path;
    const auto found = tasks_->ask(contents_, file.path.string(), stamp, [path](const std::stop_token& stop) {
        try {
            return contents_of_trace(path, stop);
        } catch (const Stopped&) {
            throw;
        } catch (const std::exception&) {
            return std::string();  // opening the file reports the error
        }
    });
    return found.value ? *found.value : "";
}

void RecentFiles::update(double now) {
    const bool is_same = seen_traces_ == settings_.recent_traces && seen_models_ == settings_.recent_models;
    if (is_same && now < look_again_at_) return;
    look_again_at_ = now + seconds_between_looks;
    seen_traces_ = settings_.recent_traces;
    seen_models_ = settings_.recent_models;
    traces_.clear();
    models_.clear();
    for (const auto& path : seen_traces_) add_once(traces_, looked_up(path, true));
    for (const auto& path : seen_models_) models_.push_back(looked_up(path, false));
}

}  // namespace kvscope::gui
