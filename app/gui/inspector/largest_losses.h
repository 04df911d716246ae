#pragma once

#include <string>

#include "app/gui/session/ranked_rows.h"
#include "app/gui/view/view.h"

namespace kvscope::gui {

/// What the inspector shows before a token is selected: the sentences of which the selected run lost most, or, where
/// the trace does not say that, the tokens that the shown runs disagree about. Each is a click away.
class LargestLosses {
 public:
    void draw(Context& context);

 private:
    /// A ranking, asked for beside the frames.
    struct Asked {
        TaskSlot<RankedRows> ranked;
        TaskSlot<OrderedRows> ordered;
        std::string of;  ///< whose rows are shown, in words
    };
    enum class Drawn { rows, nothing, nothing_yet };

    Drawn draw_losses(Context& context);
    void draw_disagreement(Context& context);

    Asked losses_, disagreement_;
};

}  // namespace kvscope::gui
