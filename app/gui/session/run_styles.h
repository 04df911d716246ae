#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "analysis/drawing/figure.h"
#include "app/gui/session/document.h"

namespace kvscope::gui {

/// Cached styles of the runs of all shown prompts.
class RunStyles {
 public:
    using Documents = std::vector<std::unique_ptr<Document>>;

    const std::vector<analysis::LineStyle>& of(const Document& document, const Documents& documents) const;
    [[nodiscard]] uint64_t number(const Documents& documents) const;
    void clear();

 private:
    mutable std::vector<std::pair<std::shared_ptr<const trace::Reader>, int>> prompts_;
    mutable std::vector<std::vector<analysis::LineStyle>> of_documents_;
    mutable uint64_t number_ = 0;
};

}  // namespace kvscope::gui
