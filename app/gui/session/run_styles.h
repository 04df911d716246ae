#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "analysis/figure.h"
#include "app/gui/session/document.h"

namespace kvscope::gui {

/// Styles of the runs of all shown prompts. Computed again when one of the prompts has changed.
class RunStyles {
 public:
    using Documents = std::vector<std::unique_ptr<Document>>;

    /// Returns the styles of a document's shown prompt, one per run in the reader's order.
    const std::vector<analysis::LineStyle>& of(const Document& document, const Documents& documents) const;
    uint64_t number(const Documents& documents) const;
    void clear();

 private:
    mutable std::vector<std::pair<std::shared_ptr<const trace::Reader>, int>> prompts_;
    mutable std::vector<std::vector<analysis::LineStyle>> of_documents_;
    mutable uint64_t number_ = 0;
};

}  // namespace kvscope::gui
