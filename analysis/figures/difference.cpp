#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>

#include "analysis/drawing/axes.h"
#include "analysis/drawing/figure_definition.h"
#include "analysis/drawing/short_label.h"
#include "analysis/drawing/subject_columns.h"
#include "analysis/measures/heads_keeping_token.h"
#include "analysis/measures/overlap.h"
#include "analysis/runs/run_choice.h"
#include "analysis/runs/run_style.h"

namespace kvscope::analysis {
namespace {

enum class Source { heads, classes };

constexpr std::array<const char*, 4> class_names = {"neither", "both", "only A", "only B"};
constexpr uint8_t kept_by_both = 0, kept_by_a = 1,
                  kept_by_b = 2;  ///< ids of the map's classes; `neither` is the background
constexpr Rgb both_color{0xb8, 0xb8, 0xb8};
constexpr Rgb a_color{0xb2, 0x18, 0x2b};
constexpr Rgb b_color{0x21, 0x66, 0xac};

Source source_from_name(const std::string& name) {
    if (name.empty() || name == "heads") return Source::heads;
    if (name == "classes") return Source::classes;
    throw FigureError(fmt::format("the figure difference has no source '{}'; it has heads, classes", name));
}

struct Side {
    int index = 0;
    std::string label;
    std::shared_ptr<const trace::Kept> kept;
    std::vector<double> counts;     ///< (L, N): heads of the layer that keep the token; 1/n if n tokens are merged
    std::vector<uint16_t> holding;  ///< (L, N): heads that hold the token, alone or in a merged entry
};

struct Pair {
    Side a;
    Side b;
    size_t n_tokens = 0;
    bool query_heads = false;
    bool common_unit = false;  ///< see FigureOptions::common_unit

    bool same_rows() const { return a.kept->n_rows == b.kept->n_rows && !common_unit; }
    bool merges() const { return a.kept->merges() || b.kept->merges(); }
    KeptSets sets(const Side& side) const { return kept_sets(*side.kept, n_tokens); }

    /// Returns the number of heads that keep the token in A minus the number in B, in per cent if their heads differ.
    double difference(size_t layer, size_t token) const {
        const size_t i = layer * n_tokens + token;
        if (same_rows()) return a.counts[i] - b.counts[i];
        return 100.0 *
               (a.counts[i] / static_cast<double>(a.kept->n_rows) - b.counts[i] / static_cast<double>(b.kept->n_rows));
    }

    uint8_t kind(size_t layer, size_t token) const {
        const size_t i = layer * n_tokens + token;
        if (a.holding[i] > 0) return b.holding[i] > 0 ? kept_by_both : kept_by_a;
        return b.holding[i] > 0 ? kept_by_b : Categories::none;
    }
};

Side read_side(const trace::Reader& reader, int prompt, int run, size_t n_tokens) {
    Side side{run, run_label(reader.run(prompt, run)), reader.kept(prompt, run), {}, {}};
    const KeptSets sets = kept_sets(*side.kept, n_tokens);
    side.counts = count_heads_keeping_per_layer(sets);
    side.holding = count_holding_heads(sets);
    return side;
}

void check(const trace::Reader& reader, const FigureOptions& options) {
    source_from_name(options.source);
    compared_runs(reader, options);
    chosen_layers(reader, options);
}

std::string own_choice(const trace::Reader& reader, const FigureOptions& options) {
    if (!options.runs.empty()) return "";
    const std::vector<int> all = chosen_runs(reader, options);
    if (all.size() <= 2) return "";
    const auto label = [&](int run) { return run_label(reader.run(options.prompt, run)); };
    return fmt::format("{} − {}, the first two of {} runs", label(all[0]), label(all[1]), all.size());
}

Pair read_pair(const trace::Reader& reader, const FigureOptions& options) {
    const std::vector<int> runs = compared_runs(reader, options);
    Pair pair;
    pair.common_unit = options.common_unit;
    pair.n_tokens = static_cast<size_t>(reader.prompt(options.prompt).visible_tokens());
    pair.a = read_side(reader, options.prompt, runs[0], pair.n_tokens);
    pair.b = read_side(reader, options.prompt, runs[1], pair.n_tokens);
    pair.query_heads = reader.run(options.prompt, runs[0]).granularity == trace::schema::run::granularity_query_head;
    return pair;
}

void add_heads(Figure& figure, Panel& panel, const Pair& pair, const std::vector<int>& layers) {
    HeatMap map;
    set_map_extent(map, layers.size(), pair.n_tokens);
    map.reduction = Reduction::magnitude;
    for (const int layer : layers) {
        for (size_t token = 0; token < pair.n_tokens; ++token) {
            map.values.push_back(static_cast<float>(pair.difference(static_cast<size_t>(layer), token)));
        }
    }
    panel.shapes.emplace_back(std::move(map));
    ColorScale scale;
    scale.map = ColorMap::blue_white_red;
    const double most = pair.same_rows() ? static_cast<double>(pair.a.kept->n_rows) : 100.0;
    scale.min = -most;
    scale.max = most;
    scale.whole_numbers = pair.same_rows() && !pair.merges();
    scale.title = pair.same_rows()
                      ? fmt::format("{} that keep the token, A − B", pair.query_heads ? "Query heads" : "KV heads")
                      : "Share of heads that keep the token, A − B";
    if (!pair.same_rows()) scale.unit = "%";
    if (pair.merges()) scale.title += " (1/n if n tokens merge)";
    figure.color_scales.push_back(scale);
    figure.caption =
        "Number of heads in a layer that keep each token in run A minus the number in run B: red where A keeps more, "
        "blue where B keeps more, white where both are equal. A pixel with several tokens shows the largest "
        "difference.";
    if (pair.merges()) figure.caption += " A token in a merged entry of n tokens counts as 1/n.";
}

void add_classes(Figure& figure, Panel& panel, const Pair& pair, const std::vector<int>& layers) {
    Categories map;
    set_map_extent(map, layers.size(), pair.n_tokens);
    map.classes = {{class_names[1], both_color}, {class_names[2], a_color}, {class_names[3], b_color}};
    for (const int layer : layers) {
        for (size_t token = 0; token < pair.n_tokens; ++token) {
            map.ids.push_back(pair.kind(static_cast<size_t>(layer), token));
        }
    }
    for (const Categories::Class& kind : map.classes) {
        figure.legend.push_back({kind.label, LegendEntry::Symbol::patch, {kind.color}});
    }
    panel.shapes.emplace_back(std::move(map));
    figure.caption =
        "Tokens that at least one head of a layer keeps in both runs, only in A, or only in B. White: neither run "
        "keeps the token. A pixel with several tokens shows \"only B\" if present, otherwise \"only A\".";
}

void name_sides(Panel& panel, const trace::Reader& reader, int prompt, const Pair& pair) {
    Figure sides;
    for (const Side* side : {&pair.a, &pair.b}) {
        const trace::RunAttributes& run = reader.run(prompt, side->index);
        sides.legend.push_back({side->label, LegendEntry::Symbol::line, {}});
        if (!run.given_label.empty()) sides.legend.back().whole = recorded_or_default_label(run);
    }
    shorten_labels(sides);
    const LegendEntry& a = sides.legend[0];
    const LegendEntry& b = sides.legend[1];
    const auto title = [](const std::string& of_a, const std::string& of_b) {
        return fmt::format("A: {}   B: {}", of_a, of_b);
    };
    const auto whole = [](const LegendEntry& side) { return side.whole.empty() ? side.label : side.whole; };
    panel.title = title(a.label, b.label);
    const std::string whole_title = title(whole(a), whole(b));
    panel.whole_title = whole_title == panel.title ? "" : whole_title;
}

Figure make(const trace::Reader& reader, const FigureOptions& options) {
    const Source source = source_from_name(options.source);
    const Pair pair = read_pair(reader, options);
    const std::vector<int> layers = chosen_layers(reader, options);
    Figure figure;
    figure.name = "difference";
    figure.title = fmt::format("{} − {}", pair.a.label, pair.b.label);
    figure.width_mm = 174;
    figure.panel_height_mm = std::clamp(1.4 * static_cast<double>(layers.size()), 8.0, 60.0);
    Panel panel = make_layer_token_panel(layers, pair.n_tokens);
    panel.subject.run = pair.a.index;
    panel.note = fmt::format("same entries {:.1f} %", 100 * run_overlap_total(pair.sets(pair.a), pair.sets(pair.b)));
    (source == Source::heads ? add_heads : add_classes)(figure, panel, pair, layers);
    figure.caption +=
        " Same entries: entries that both runs keep, as a share of the entries that at least one run keeps";
    figure.caption += pair.merges() ? "; a token in a merged entry of n tokens counts as 1/n." : ".";
    figure.panels.push_back(std::move(panel));
    complete_figure(figure, reader, options, {pair.a.index, pair.b.index});
    name_sides(figure.panels.front(), reader, options.prompt, pair);
    return figure;
}

Table numbers(const trace::Reader& reader, const FigureOptions& options) {
    const Source source = source_from_name(options.source);
    const Pair pair = read_pair(reader, options);
    const Column last = source == Source::classes ? Column{"class", "Class", "", ColumnType::text}
                        : pair.same_rows()
                            ? Column{"difference", "A − B", "", ColumnType::real, pair.merges() ? 2 : 0}
                            : Column{"difference_percent", "A − B", "%", ColumnType::real, pair.merges() ? 2 : 1};
    SubjectTable table(
        "difference",
        fmt::format("Number of heads that keep each token in A ({}) and B ({}), without tokens that neither run keeps",
                    pair.a.label, pair.b.label),
        {SubjectKey::run_a, SubjectKey::run_b, SubjectKey::layer, SubjectKey::token,
         Column{"heads_a", "Heads A", "", ColumnType::integer}, Column{"heads_b", "Heads B", "", ColumnType::integer},
         Column{"entries_a", "Entries A", "", ColumnType::real, 2},
         Column{"entries_b", "Entries B", "", ColumnType::real, 2}, last});
    for (const int layer : chosen_layers(reader, options)) {
        const auto l = static_cast<size_t>(layer);
        for (size_t token = 0; token < pair.n_tokens; ++token) {
            const uint8_t kind = pair.kind(l, token);
            if (kind == Categories::none) continue;
            const Cell what = source == Source::classes ? Cell(std::string(class_names[kind + size_t{1}]))
                                                        : Cell(pair.difference(l, token));
            SubjectPair of{{.run = pair.a.index, .layer = layer, .token = static_cast<int>(token)}, {}};
            of.b = of.a;
            of.b.run = pair.b.index;
            const size_t place = l * pair.n_tokens + token;
            table.add(of, {int64_t{pair.a.holding[place]}, int64_t{pair.b.holding[place]}, pair.a.counts[place],
                           pair.b.counts[place], what});
        }
    }
    return table.take();
}

}  // namespace

FigureDefinition difference_figure() {
    FigureDefinition definition{
        "difference",
        "Difference",
        "Tokens that run A keeps in more or in fewer heads than run B: a map of layers by tokens",
        {{"runs", "two runs, A and B, by label or number; default: the first two except full"},
         {"source",
          "heads (default): heads that keep the token in A minus heads in B; classes: kept in both, only in A or only "
          "in B",
          {"heads", "classes"}},
         {"layers", "default: all"}},
        check,
        make,
        numbers,
        {},
        nullptr,
        nullptr,
        nullptr,
        own_choice};
    definition.shown_runs = compared_runs;
    return definition;
}

}  // namespace kvscope::analysis
