#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "analysis/figure.h"
#include "app/gui/session/document.h"

namespace kvscope::gui {

/// How the runs of the open traces' shown prompts look beside one another; made anew when one of them has changed.
class RunStyles {
 public:
    using Documents = std::vector<std::unique_ptr<Document>>;

    /// Of one of these documents, one style for each run of its shown prompt, in the reader's order.
    const std::vector<analysis::LineStyle>& of(const Document& document, const Documents& documents) const;
    /// Changes when a run of any document gets another style; 0 where there is none.
    uint64_t number(const Documents& documents) const;
    void clear();

 private:
    /// What they were made from.
    mutable std::vector<std::pair<std::shared_ptr<const trace::Reader>, int>> prompts_;
    mutable std::vector<std::vector<analysis::LineStyle>> of_documents_;
    mutable uint64_t number_ = 0;
};

}  // namespace kvscope::gui
