#pragma once

#include <string>

#include "app/gui/view/view.h"
#include "app/gui/view_data/ranked_rows.h"

namespace kvscope::gui {

/// Content of the inspector while no token is selected: the sentences with the largest losses of the selected run or,
/// if losses are not recorded, the tokens on which the shown runs disagree.
class LargestLosses {
 public:
    void draw(Context& context);

 private:
    struct Asked {
        TaskSlot<RankedRows> ranked;
        TaskSlot<OrderedRows> ordered;
        std::string of;  ///< the run or runs whose rows are shown, for the heading
    };
    enum class Drawn { rows, nothing, nothing_yet };

    [[nodiscard]] Drawn draw_losses(Context& context);
    void draw_disagreement(Context& context);

    Asked losses_, disagreement_;
};

}  // namespace kvscope::gui
