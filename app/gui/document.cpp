#include "app/gui/document.h"

#include <fmt/format.h>

namespace kvscope::gui {

Document::Document(int id, const std::filesystem::path& path)
    : id_(id), path_(path), file_(std::make_shared<const trace::Reader>(path)), reader_(file_) {}

void Document::reload() {
    file_ = std::make_shared<const trace::Reader>(path_);
    ++file_version_;
    rebuild();
}

void Document::set_added_runs(int prompt_index, std::vector<trace::RunRecord> runs) {
    added_[prompt_index] = std::move(runs);
    ++added_version_[prompt_index];
    rebuild();
}

int Document::n_added_runs(int prompt_index) const {
    const auto found = added_.find(prompt_index);
    return found == added_.end() ? 0 : static_cast<int>(found->second.size());
}

void Document::rebuild() {
    reader_ = file_;
    for (const auto& [prompt_index, runs] : added_) {
        if (prompt_index >= file_->n_prompts()) continue;
        for (const auto& run : runs)
            reader_ = std::make_shared<const trace::Reader>(reader_->with_run(prompt_index, run));
    }
}

std::string Document::stamp() const { return fmt::format("{}.{}", id_, file_version_); }

std::string Document::run_stamp(int prompt_index, int run) const {
    const auto version = added_version_.find(prompt_index);
    if (run < file_->n_runs(prompt_index) || version == added_version_.end()) return stamp();
    return fmt::format("{}+{}", stamp(), version->second);
}

}  // namespace kvscope::gui
