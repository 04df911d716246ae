#include <fmt/format.h>

#include "analysis/tables/number_text.h"
#include "analysis/tables/table_format.h"
#include "app/gui/figure/figure_view.h"

namespace kvscope::gui {
namespace {

class BudgetsView : public HeadMapsView {
 public:
    BudgetsView()
        : HeadMapsView({"budgets", open_trace_or_demo() + " to see what each head keeps.",
                        "counting what each head keeps …", ""},
                       "how many entries a head keeps") {}

 private:
    const char* measure() const override { return "head_budget"; }

    std::vector<std::string> describe(const Session& session, const RunKey& run, const FigureHit& hit,
                                      bool is_difference) const override {
        if (is_difference)
            return {fmt::format("{} − {}", session.look(*session.pair.a).label, session.look(*session.pair.b).label),
                    fmt::format("{:+.0f} entries", hit.value)};
        const auto n = session.document(run)->reader()->prompt(run.prompt).visible_tokens();
        return {session.look(run).label,
                fmt::format("{} entries, {} of {} tokens", analysis::format_count(static_cast<int64_t>(hit.value)),
                            analysis::format_share(static_cast<double>(hit.value) / static_cast<double>(n)),
                            analysis::format_count(n))};
    }
};

}  // namespace

ViewKind budgets_view() {
    return {"budgets",    "Budgets",    "Entries kept by each head of each layer, one map per run on a common scale",
            Dock::bottom, Topic::heads, make_view<BudgetsView>,
            R"(
338.115.992.446.
338.115.992.446.
................
772.664.118.553.
772.664.118.553.
................
559.338.266.911.
559.338.266.911.)"};
}

}  // namespace kvscope::gui
