#pragma once

#include <imgui.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "app/gui/tokens/prompt_lines.h"
#include "app/gui/tokens/prompt_search.h"
#include "app/gui/tokens/token_retention_counts.h"
#include "app/gui/view/view.h"
#include "app/gui/view_data/prompt_text.h"

namespace kvscope::gui {

/// A prompt and where one run keeps its tokens. Pointers are nullptr until the data is read.
struct PromptColumn {
    RunKey run;
    const Document* document = nullptr;
    std::shared_ptr<const PromptText> prompt;
    std::shared_ptr<const PromptLines> lines;
    std::shared_ptr<const TokenRetentionCounts> counts;
    std::shared_ptr<const TokenRetentionCounts> less;  ///< counts of another run to subtract, or nullptr
    std::string error;                                 ///< reason why the prompt or its counts cannot be read, or empty
    TokenSpans marks;
    const std::set<int64_t>* pins = nullptr;
    float x = 0;  ///< left edge in screen pixels
};

struct PromptGrid {
    ImVec2 origin;     ///< position of the first character of the first column, in pixels
    float cell = 0;    ///< width of a character cell, in pixels
    float line = 0;    ///< height of a line, in pixels
    float column = 0;  ///< distance between columns, in pixels
    size_t cells = 0;  ///< cells per line
    float top = 0;     ///< upper edge of the visible text, below the labels
    float bottom = 0;
    bool by_heads = false;  ///< whether the color counts heads, not layers
    double least = 1;       ///< smallest count in the color scale, for all columns
    double farthest = 1;    ///< largest difference in the color scale, same as in exports
};

/// Returns the column of a run with the data read so far. `slot` holds the lines for all columns of a document.
[[nodiscard]] PromptColumn make_prompt_column(Session& session, const RunKey& key, const TaskSlot<PromptLines>& slot,
                                              const PromptGrid& grid);

void draw_prompt_column(Context& context, const PromptColumn& one, const PromptGrid& grid, const PromptSearch& search);

/// Returns the token under the mouse, or −1.
[[nodiscard]] int64_t token_under_mouse(const PromptColumn& one, const PromptGrid& grid);

[[nodiscard]] const Note* note_at_token(const Document& document, int64_t token);

}  // namespace kvscope::gui
