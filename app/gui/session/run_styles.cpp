#include "app/gui/session/run_styles.h"

#include "analysis/runs/run_style.h"
#include "common/unique_id.h"

namespace kvscope::gui {

const std::vector<analysis::LineStyle>& RunStyles::of(const Document& document, const Documents& documents) const {
    std::vector<std::pair<std::shared_ptr<const trace::Reader>, int>> prompts;
    size_t place = 0;
    for (const auto& each : documents) {
        if (each.get() == &document) place = prompts.size();
        prompts.emplace_back(each->reader(), each->prompt);
    }
    if (prompts != prompts_) {
        const auto runs_of = [](const trace::Reader& reader, int prompt) {
            return prompt < reader.n_prompts() ? reader.runs(prompt) : std::vector<trace::RunAttributes>{};
        };
        std::vector<std::vector<trace::RunAttributes>> runs;
        for (const auto& [reader, prompt] : prompts) runs.push_back(runs_of(*reader, prompt));
        const Document& first = *documents.front();
        auto styles = analysis::run_styles_of_traces(runs, runs_of(*first.file(), first.prompt));
        if (styles != of_documents_ || number_ == 0) number_ = unique_id();
        of_documents_ = std::move(styles);
        prompts_ = std::move(prompts);
    }
    return of_documents_[place];
}

uint64_t RunStyles::number(const Documents& documents) const {
    if (documents.empty()) return 0;
    of(*documents.front(), documents);
    return number_;
}

void RunStyles::clear() {
    prompts_.clear();
    of_documents_.clear();
    number_ = 0;
}

}  // namespace kvscope::gui
