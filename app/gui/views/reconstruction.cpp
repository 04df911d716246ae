#include <fmt/format.h>

#include "app/gui/figure/figure_view.h"

namespace kvscope::gui {
namespace {

class ReconstructionView : public HeadMapsView {
 public:
    ReconstructionView()
        : HeadMapsView({"reconstruction", "Open a trace to see the error of stored keys and values.",
                        "reading the caches …", ""},
                       "error of a head's keys or values", 2) {}

 private:
    const char* measure() const override { return "reconstruction"; }

    std::vector<std::string> describe(const Session& session, const RunKey& run, const FigureHit& hit,
                                      bool is_difference) const override {
        // For each run, the figure has a panel for keys and then a panel for values.
        const char* what = hit.panel % 2 == 0 ? "keys" : "values";
        if (is_difference)
            return {fmt::format("{} − {}", session.look(*session.pair.a).label, session.look(*session.pair.b).label),
                    fmt::format("{}: {:+.2f} percentage points", what, hit.value)};
        return {session.look(run).label, fmt::format("error of {}: {:.2f} %", what, hit.value)};
    }
};

}  // namespace

ViewKind reconstruction_view() {
    return {"reconstruction",
            "Reconstruction error",
            "Error of the stored keys and values by layer and head",
            Dock::bottom,
            Topic::heads,
            make_view<ReconstructionView>,
            R"(
2.3.1.4...4.5.3.
................
3.2.2.5...6.5.4.
................
4.3.5.4...7.6.8.
................
6.5.4.7...9.7.8.
................)"};
}

}  // namespace kvscope::gui
