#include <fmt/format.h>
#include <fmt/ranges.h>
#include <imgui.h>

#include "app/gui/figure/figure_view.h"
#include "app/gui/view/widgets.h"
#include "app/gui/view_data/measure_definitions.h"

namespace kvscope::gui {
namespace {

/// Key channels that the heads keep: (L, R, d), 1 if a head keeps the channel.
struct KeyChannels {
    size_t n_rows = 0;
    size_t n_channels = 0;
    std::vector<uint8_t> kept;

    std::vector<size_t> heads_that_keep(size_t layer, size_t channel) const {
        std::vector<size_t> heads;
        for (size_t row = 0; row < n_rows; ++row)
            if (kept.at((layer * n_rows + row) * n_channels + channel) != 0) heads.push_back(row);
        return heads;
    }
};

KeyChannels read_channels(const RunAt& run) {
    return {run.n_rows(), static_cast<size_t>(run.reader->model().head_dim),
            run.reader->read<uint8_t>(run.place(), trace::schema::run::channels_kept)};
}

class ChannelsView : public FigureView {
 public:
    ChannelsView()
        : FigureView({"channels", "Open a trace to see which key channels are kept.", "reading the channels …", ""},
                     Kind::maps_of_runs) {}

    std::vector<std::pair<std::string, std::string>> help() const override {
        return {{"move the mouse", "show which heads keep a channel"},
                {"click", "select the run and the layer"},
                {"drag, wheel, Ctrl-drag", "pan, zoom, zoom into a box"},
                {"wheel beside a map, Page Up, Page Down", "scroll to the other maps"},
                {"double-click, F", "everything"}};
    }

 private:
    void draw_figure(Context& context, const FigureRequest& request,
                     const std::shared_ptr<const PreparedFigure>& shown) override {
        const FigureHit hit = plot_.draw(context, "channel maps", {0, 0}, shown);
        if (hit.row < 0 || !hit.over || !hit.over->run.valid()) return;
        draw_tooltip(context, hit.over->run, hit, request.difference);
    }

    void draw_tooltip(Context& context, const RunKey& run, const FigureHit& hit, bool is_difference) {
        Session& session = context.session;
        begin_tooltip_beside();
        ImGui::Text("layer %d, channel %d of the keys", hit.subject.layer, hit.column);
        if (is_difference) {
            plain_text(fmt::format("{} − {}: {:+.0f} heads", session.look(*session.pair.a).label,
                                   session.pair.b ? session.look(*session.pair.b).label : std::string("none"),
                                   hit.value));
        } else {
            ImGui::TextUnformatted(session.look(run).label.c_str());
            ImGui::TextUnformatted(heads_text(session, run, hit).c_str());
        }
        ImGui::TextDisabled("%s", measure_definition("channels"));
        end_tooltip_beside();
    }

    std::string heads_text(Session& session, const RunKey& run, const FigureHit& hit) {
        const auto channels = session.tasks.ask(
            channels_, run.text(), session.stamp(run),
            [at = session.at(run)](const std::stop_token& stop) { return read_channels(at.with_stop(stop)); });
        if (!channels.value) return fmt::format("kept by {:.0f} heads", hit.value);
        const auto heads =
            channels.value->heads_that_keep(static_cast<size_t>(hit.subject.layer), static_cast<size_t>(hit.column));
        if (heads.empty()) return "kept by no head";
        return fmt::format("kept by {} of {} heads ({})", heads.size(), channels.value->n_rows, fmt::join(heads, ", "));
    }

    TaskSlot<KeyChannels> channels_;
};

}  // namespace

ViewKind channels_view() {
    return {"channels",   "Key channels", "Key channels kept by the heads of each layer, for runs that drop some",
            Dock::bottom, Topic::heads,   make_view<ChannelsView>,
            R"(
9099009909990090
9090009909900990
9099009909990090
................
0990990090990909
0990090090990909
0990990099990900
0990990090990909)"};
}

}  // namespace kvscope::gui
