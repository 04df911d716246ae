#pragma once

#include <imgui.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "app/gui/session/prompt_text.h"
#include "app/gui/tokens/prompt_counts.h"
#include "app/gui/tokens/prompt_lines.h"
#include "app/gui/tokens/prompt_search.h"
#include "app/gui/view/view.h"

namespace kvscope::gui {

/// The prompt as one run kept it; what is not read yet is nullptr.
struct PromptColumn {
    RunKey run;
    const Document* document = nullptr;
    std::shared_ptr<const PromptText> prompt;
    std::shared_ptr<const PromptLines> lines;
    std::shared_ptr<const PromptCounts> counts;
    std::shared_ptr<const PromptCounts> less;  ///< of a run that keeps the same prompt: the colour is the difference
    std::string error;                         ///< why the prompt cannot be read, or its counts
    TokenSpans marks;
    const std::set<int64_t>* pins = nullptr;
    float x = 0;  ///< on the screen
};

/// Where text stands.
struct PromptGrid {
    ImVec2 origin;     ///< of line 0 and cell 0 of the first column, on the screen
    float cell = 0;    ///< width
    float line = 0;    ///< height
    float column = 0;  ///< from column to column
    size_t cells = 0;  ///< of a line
    float top = 0;     ///< of the visible text, below the labels
    float bottom = 0;
    bool by_heads = false;  ///< what the colour counts
    double least = 1;       ///< where its colours begin, for all columns
    double farthest = 1;    ///< of a difference: from zero, as the exported figure has it
};

/// @param slot for the lines, which all columns of a document share
PromptColumn prompt_column(Session& session, const RunKey& key, const TaskSlot<PromptLines>& slot,
                           const PromptGrid& grid);

/// What of it is to be seen, with everything that is outlined in it.
void draw_prompt_column(Context& context, const PromptColumn& one, const PromptGrid& grid, const PromptSearch& search);

/// −1: none.
int64_t token_under_mouse(const PromptColumn& one, const PromptGrid& grid);

/// The first note on a token, or nullptr.
const Note* note_at(const Document& document, int64_t token);

}  // namespace kvscope::gui
