#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "analysis/drawing/color_map.h"
#include "analysis/drawing/subject_columns.h"
#include "analysis/figures_of_several_traces.h"
#include "analysis/runs/run_choice.h"
#include "analysis/runs/run_pairs.h"
#include "analysis/runs/shown_runs.h"

namespace kvscope::analysis {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

[[noreturn]] void disagree(const std::string& what) {
    throw NothingToShow("A − B needs maps and curves of equal shape: " + what);
}

double difference(double a, double b, bool as_ratio) {
    if (!as_ratio) return a - b;
    return a > 0 && b > 0 ? a / b : nan;
}

HeatMap map_difference(const HeatMap& a, const HeatMap& b, const std::string& where) {
    if (a.rows != b.rows || a.columns != b.columns)
        disagree(
            fmt::format("{} has {} × {} cells in A and {} × {} in B", where, a.rows, a.columns, b.rows, b.columns));
    HeatMap map = a;
    for (size_t i = 0; i < map.values.size(); ++i) map.values[i] -= b.values[i];
    map.reduction = Reduction::magnitude;
    return map;
}

Line line_difference(const Line& a, const Line& b, bool as_ratio, const std::string& where) {
    Line line = a;
    const size_t n = std::min(a.x.size(), b.x.size());
    if (!std::equal(a.x.begin(), a.x.begin() + static_cast<std::ptrdiff_t>(n), b.x.begin()))
        disagree(fmt::format("the points of {} have different x in A and B", where));
    line.x.resize(n);
    line.y.resize(n);
    line.low.clear();
    line.high.clear();
    for (size_t i = 0; i < n; ++i) line.y[i] = difference(a.y[i], b.y[i], as_ratio);
    return line;
}

bool are_like(const Line& a, const Line& b) {
    return a.label == b.label && a.subject.layer == b.subject.layer && a.subject.head == b.subject.head;
}

bool is_map(const Panel& panel) {
    return std::any_of(panel.shapes.begin(), panel.shapes.end(),
                       [](const Shape& shape) { return std::holds_alternative<HeatMap>(shape); });
}

std::vector<std::string> labels_of(const Axis& axis) {
    std::vector<std::string> labels;
    for (const auto& tick : axis.ticks) labels.push_back(tick.label);
    return labels;
}

struct PairedParts {
    std::array<TracePart, 2> sides;
    std::vector<std::pair<int, int>> runs;  ///< run of A and run of B for each pair; empty if the figure shows no runs
    std::vector<std::string> labels;        ///< label of each pair
    std::string unpaired;                   ///< result of unpaired_runs()
};

/// @throws NothingToShow if there are no pairs
PairedParts paired_parts(const FigureDefinition& definition, const TracePart& a, const TracePart& b) {
    PairedParts paired{{a, b}, {}, {}, ""};
    auto& sides = paired.sides;
    const auto set_common_unit = [&](bool are_like) {
        for (TracePart& side : sides) side.options.common_unit = !are_like;
    };
    set_common_unit(a.reader->model().n_heads == b.reader->model().n_heads);  // for figures without runs
    if (!definition.shown_runs && !definition.make_difference) return paired;
    // A figure that chooses among many runs uses A's choice and the paired runs of B.
    const bool chooses = definition.own_choice && a.options.runs.empty() && b.options.runs.empty();
    const auto runs_of = [&](const TracePart& part, bool all) {
        return all ? chosen_runs(*part.reader, part.options) : definition.shown_runs(*part.reader, part.options);
    };
    const bool is_of_all = !definition.shown_runs;
    const std::vector<int> of_a = runs_of(a, is_of_all);
    const std::vector<int> of_b = of_a.empty() ? std::vector<int>{} : runs_of(b, is_of_all || chooses);
    if (of_a.empty()) return paired;
    const ComparedSides compared = compared_sides(sides, of_a, of_b);
    const std::vector<ShownPair> pairs = shown_pairs(compared);
    paired.unpaired = unpaired_runs(compared_sides(sides, of_a, chooses ? std::vector<int>{} : of_b), pairs);
    if (chooses && !paired.unpaired.empty())
        throw NothingToShow(
            fmt::format("runs without a pair: {}; choose runs that are in both A and B", paired.unpaired));
    std::array<std::vector<RunChoice>, 2> runs;
    bool are_by_same_heads = true;
    for (const ShownPair& pair : pairs) {
        paired.runs.emplace_back(pair.a.index, pair.b.index);
        paired.labels.push_back(pair.label);
        runs[0].emplace_back(pair.a.index);
        runs[1].emplace_back(pair.b.index);
        are_by_same_heads =
            are_by_same_heads && pair.a.attributes().granularity == pair.b.attributes().granularity &&
            a.reader->n_rows(a.options.prompt, pair.a.index) == b.reader->n_rows(b.options.prompt, pair.b.index);
    }
    if (!definition.shown_runs) return paired;
    for (size_t side = 0; side < 2; ++side) sides[side].options.runs = runs[side];
    set_common_unit(are_by_same_heads);
    return paired;
}

struct Sides {
    Figure a, b;
};

/// Returns B's panels in A's order. Panels match if their runs are paired and they have equal part, layer and head.
std::vector<Panel> panels_like(const Figure& a, const Figure& b, const PairedParts& paired) {
    const auto are_of_like = [&](const Panel& of_a, const Panel& of_b) {
        const bool are_paired = of_a.subject.run < 0
                                    ? of_b.subject.run < 0
                                    : std::find(paired.runs.begin(), paired.runs.end(),
                                                std::pair(of_a.subject.run, of_b.subject.run)) != paired.runs.end();
        return are_paired && of_a.part == of_b.part && of_a.subject.layer == of_b.subject.layer &&
               of_a.subject.head == of_b.subject.head;
    };
    std::vector<Panel> panels;
    for (size_t p = 0; p < a.panels.size(); ++p) {
        const auto n_before = std::count_if(
            a.panels.begin(), a.panels.begin() + static_cast<std::ptrdiff_t>(p),
            [&](const Panel& other) { return other.subject == a.panels[p].subject && other.part == a.panels[p].part; });
        auto found = std::find_if(b.panels.begin(), b.panels.end(),
                                  [&](const Panel& panel) { return are_of_like(a.panels[p], panel); });
        for (std::ptrdiff_t i = 0; i < n_before && found != b.panels.end(); ++i)
            found = std::find_if(found + 1, b.panels.end(),
                                 [&](const Panel& panel) { return are_of_like(a.panels[p], panel); });
        if (found == b.panels.end())
            disagree(fmt::format("{} of A has no counterpart in B",
                                 a.panels[p].title.empty() ? "a panel" : a.panels[p].title));
        panels.push_back(*found);
    }
    return panels;
}

Sides read_sides(const FigureDefinition& definition, const PairedParts& paired) {
    const TracePart &a = paired.sides[0], &b = paired.sides[1];
    Sides sides{definition.make(*a.reader, a.options), definition.make(*b.reader, b.options)};
    if (paired.runs.empty() && sides.a.panels.size() != sides.b.panels.size()) {
        disagree(fmt::format("A ({}) has {} panels, B ({}) has {}: choose the same runs, layers and heads for both",
                             a.name, sides.a.panels.size(), b.name, sides.b.panels.size()));
    }
    if (!paired.runs.empty()) sides.b.panels = panels_like(sides.a, sides.b, paired);
    for (size_t p = 0; p < sides.a.panels.size(); ++p) {
        const Panel& of_a = sides.a.panels[p];
        const Panel& of_b = sides.b.panels[p];
        if (of_a.shapes.size() != of_b.shapes.size()) {
            disagree(fmt::format("{} has {} curves in A and {} in B", of_a.title.empty() ? "the panel" : of_a.title,
                                 of_a.shapes.size(), of_b.shapes.size()));
        }
        if (is_map(of_a) && labels_of(of_a.x) != labels_of(of_b.x)) {
            disagree(fmt::format("the labels on the {} axis of {} differ between A and B",
                                 of_a.x.title.empty() ? "x" : of_a.x.title, of_a.title));
        }
        if (of_a.y.title != of_b.y.title)
            disagree(fmt::format("the y axis is {} in A and {} in B", of_a.y.title, of_b.y.title));
    }
    return sides;
}

std::string title_of(const Panel& panel, const Panel& of_b, const PairedParts& paired) {
    const auto is_renamed = [](const TracePart& part, const Panel& of) {
        return of.subject.run >= 0 && !part.reader->run(part.options.prompt, of.subject.run).given_label.empty();
    };
    const bool has_whole =
        !panel.whole_title.empty() && !is_renamed(paired.sides[0], panel) && !is_renamed(paired.sides[1], of_b);
    return has_whole ? panel.whole_title : panel.title;
}

std::string in_words(const std::vector<std::string>& labels) {
    constexpr size_t most = 3;
    std::string text;
    for (size_t i = 0; i < std::min(labels.size(), most); ++i) text += (i > 0 ? ", " : "") + labels[i];
    if (labels.size() > most) text += fmt::format(" and {} more", labels.size() - most);
    return text;
}

/// Returns title and unit of a shape's numbers: "KV heads that keep the token", "Relative error (%)".
std::string unit_of(const Figure& figure, const Panel& panel, const Shape& shape) {
    const auto* map = std::get_if<HeatMap>(&shape);
    const ColorScale* scale =
        map && map->color_scale < figure.color_scales.size() ? &figure.color_scales[map->color_scale] : nullptr;
    return scale ? with_unit(scale->title, scale->unit) : with_unit(panel.y.title, panel.y.unit);
}

void name_sides(Figure& figure, const FigureDefinition& definition, const PairedParts& paired) {
    const TracePart &a = paired.sides[0], &b = paired.sides[1];
    if (!paired.labels.empty()) figure.title += ": " + in_words(paired.labels);
    if (a.reader != b.reader && !a.name.empty() && !b.name.empty())
        figure.title += fmt::format("; {} − {}", a.name, b.name);
    if (!paired.unpaired.empty())
        figure.caption += fmt::format(" Omitted because they have no pair: {}.", paired.unpaired);
    if (const std::string unlike = prompt_difference(definition, a, b); !unlike.empty())
        figure.caption += fmt::format(" The prompts differ: {}.", unlike);
    add_prompt_to_title(figure, definition, paired.sides);
}

void set_limits(Figure& figure) {
    double most = 0;
    for (const Panel& panel : figure.panels) {
        for (const Shape& shape : panel.shapes) {
            const auto* map = std::get_if<HeatMap>(&shape);
            if (!map) continue;
            for (const float value : map->values) {
                if (std::isfinite(value)) most = std::max(most, std::abs(static_cast<double>(value)));
            }
        }
    }
    for (ColorScale& scale : figure.color_scales) {
        scale.map = ColorMap::blue_white_red;
        scale.map_begin = 0;
        scale.map_end = 1;
        scale.scale = Scale::linear;
        scale.background_label.clear();
        scale.title = "A − B: " + scale.title;
        scale.whole_numbers = false;
        scale.max = most > 0 ? most : 1;
        scale.min = -scale.max;
    }
}

std::optional<double> value_at(const HeatMap& map, double x, double y) {
    const double row = (y - map.y_begin) / (map.y_end - map.y_begin);
    const double column = (x - map.x_begin) / (map.x_end - map.x_begin);
    if (!(row >= 0 && row < 1 && column >= 0 && column < 1)) return {};
    return map.values[static_cast<size_t>(row * static_cast<double>(map.rows)) * map.columns +
                      static_cast<size_t>(column * static_cast<double>(map.columns))];
}

/// Updates the texts on maps: numbers become differences, tokens stay.
void set_texts(Figure& figure) {
    for (Panel& panel : figure.panels) {
        const HeatMap* map = nullptr;
        for (const Shape& shape : panel.shapes)
            if (!map) map = std::get_if<HeatMap>(&shape);
        if (!map || map->rows == 0 || map->columns == 0) continue;
        const ColorScale& scale = figure.color_scales.at(map->color_scale);
        for (Shape& shape : panel.shapes) {
            auto* label = std::get_if<TextLabel>(&shape);
            if (!label) continue;
            const auto value = value_at(*map, label->x, label->y);
            if (!value) continue;
            const double shown = std::isfinite(*value) ? *value : 0;
            const auto ink_of = [&](double number) {
                return ink_on(color_at(scale.map, position_on_scale(scale, number)));
            };
            label->color = ink_of(shown);
            for (TextLabel::Ink& ink : label->inks) {
                const double of_part = value_at(*map, ink.x, label->y).value_or(shown);
                ink.color = ink_of(std::isfinite(of_part) ? of_part : 0);
            }
            if (label->subject.token < 0) label->text = std::isfinite(*value) ? fmt::format("{:+.3g}", shown) : "";
        }
    }
}

void set_axis(Panel& panel, bool as_ratio) {
    double farthest = 0;
    for (const Shape& shape : panel.shapes) {
        const auto* line = std::get_if<Line>(&shape);
        if (!line) continue;
        for (const double y : line->y) {
            if (std::isfinite(y)) farthest = std::max(farthest, std::abs(as_ratio ? std::log10(y) : y));
        }
    }
    panel.y.ticks.clear();
    panel.y.title = (as_ratio ? "A ÷ B: " : "A − B: ") + panel.y.title;
    if (as_ratio) {
        const double most = std::pow(10, std::max(farthest * 1.05, 0.05));
        panel.y.min = 1 / most;
        panel.y.max = most;
    } else {
        panel.y.max = std::max(farthest * 1.08, 1e-9);
        panel.y.min = -panel.y.max;
    }
    LineStyle grey;
    grey.color = Rgb{120, 120, 120};
    grey.width_pt = 0.5;
    panel.shapes.emplace_back(Rule{true, as_ratio ? 1.0 : 0.0, "", grey});
}

std::vector<SubjectKey> keys_of(const Figure& figure) {
    bool of_runs = false;
    std::set<SubjectKey> keys;
    const auto take = [&](const Subject& of) {
        of_runs = of_runs || of.run >= 0;
        if (of.layer >= 0) keys.insert(SubjectKey::layer);
        if (of.head >= 0) keys.insert(SubjectKey::head);
    };
    const auto take_axes = [&](const Panel& panel) {
        const bool alike = panel.x.dimension == panel.y.dimension;
        for (const Axis* axis : {&panel.x, &panel.y}) {
            switch (axis->dimension) {
                case Dimension::none:
                    break;
                case Dimension::run:
                    of_runs = true;
                    break;
                case Dimension::layer:
                    alike ? keys.insert({SubjectKey::layer_a, SubjectKey::layer_b}) : keys.insert({SubjectKey::layer});
                    break;
                case Dimension::kv_head:
                case Dimension::query_head:
                    alike ? keys.insert({SubjectKey::head_a, SubjectKey::head_b}) : keys.insert({SubjectKey::head});
                    break;
                case Dimension::token:
                    alike ? keys.insert({SubjectKey::token_a, SubjectKey::token_b}) : keys.insert({SubjectKey::token});
                    break;
                case Dimension::step:
                    keys.insert(SubjectKey::step);
                    break;
            }
        }
    };
    for (const Panel& panel : figure.panels) {
        take_axes(panel);
        take(panel.subject);
        for (const Shape& shape : panel.shapes) take(subject_of_shape(panel, shape));
    }
    if (of_runs) keys.insert({SubjectKey::run_a, SubjectKey::run_b});
    return {keys.begin(), keys.end()};
}

/// Whether the table needs a column for rows or curves, and a column for x, because no subject identifies them.
std::pair<bool, bool> uncounted_axes(const Figure& figure) {
    bool rows = false, x = false;
    for (const Panel& panel : figure.panels) {
        x = x || panel.x.dimension == Dimension::none;
        for (const Shape& shape : panel.shapes) {
            const auto* line = std::get_if<Line>(&shape);
            const bool is_named = line && subject_of_shape(panel, shape) == panel.subject && !line->label.empty();
            const bool is_map = std::holds_alternative<HeatMap>(shape) && panel.y.dimension == Dimension::none;
            rows = rows || is_named || is_map;
        }
    }
    return {rows, x};
}

}  // namespace

std::string prompt_difference(const FigureDefinition& definition, const TracePart& a, const TracePart& b) {
    const auto has_prompt = [&](const TracePart& part) {
        const bool is_of_prompt = !definition.is_of_prompt || definition.is_of_prompt(part.options);
        return is_of_prompt && part.options.prompt < part.reader->n_prompts();
    };
    if (a.reader == b.reader || !has_prompt(a) || !has_prompt(b)) return {};
    const auto ids = a.reader->token_ids(a.options.prompt), others = b.reader->token_ids(b.options.prompt);
    if (ids == others) return {};
    const auto first = std::mismatch(ids.begin(), ids.end(), others.begin(), others.end()).first - ids.begin();
    return fmt::format("{} tokens in A, {} in B, different from token {} on", ids.size(), others.size(), first);
}

std::string unpaired_runs(const FigureDefinition& definition, const TracePart& a, const TracePart& b) {
    return paired_parts(definition, a, b).unpaired;
}

Figure make_difference(const FigureDefinition& definition, const TracePart& a, const TracePart& b) {
    const PairedParts paired = paired_parts(definition, a, b);
    if (definition.make_difference) {
        Figure figure = definition.make_difference(std::array{a, b});
        name_sides(figure, definition, paired);
        return figure;
    }
    Sides sides = read_sides(definition, paired);
    Figure figure = std::move(sides.a);
    const std::string both = fmt::format("A: {}, B: {}", a.name, b.name);
    const bool are_two_traces = a.reader != b.reader;
    const std::string unit = figure.panels.empty() || figure.panels.front().shapes.empty()
                                 ? ""
                                 : unit_of(figure, figure.panels.front(), figure.panels.front().shapes.front());
    for (size_t p = 0; p < figure.panels.size(); ++p) {
        Panel& panel = figure.panels[p];
        const Panel& other = sides.b.panels[p];
        const bool as_ratio = panel.y.scale == Scale::logarithmic;
        // The title need not contain Panel::part, which is shown next to the title.
        const auto without_part = [&](std::string title) {
            const std::string part = ", " + panel.part;
            if (!panel.part.empty() && title.ends_with(part)) title.resize(title.size() - part.size());
            return title;
        };
        const auto whole = [&](const Panel& of) {
            return without_part(of.whole_title.empty() ? of.title : of.whole_title);
        };
        const std::string whole_title = pair_title(paired.sides, whole(panel), whole(other));
        if (panel.subject.run >= 0 && panel.subject.layer < 0)
            panel.title = pair_title(paired.sides, without_part(panel.title), without_part(other.title));
        else if (figure.panels.size() == 1 && !panel.title.empty() && a.name != b.name)
            panel.title = fmt::format("{} − {}", a.name, b.name);
        else if (panel.title != other.title)
            panel.title = fmt::format("{} − {}", panel.title, other.title);
        if (!panel.whole_title.empty() || !other.whole_title.empty()) panel.whole_title = whole_title;
        panel.note = panel.part;
        bool has_map = false;
        for (size_t l = 0; l < panel.shapes.size(); ++l) {
            const std::string where = panel.title.empty() ? "the map" : panel.title;
            if (auto* map = std::get_if<HeatMap>(&panel.shapes[l])) {
                const auto* like = std::get_if<HeatMap>(&other.shapes[l]);
                if (!like) disagree(where + " is a map only in A");
                *map = map_difference(*map, *like, where);
                has_map = true;
            } else if (auto* line = std::get_if<Line>(&panel.shapes[l])) {
                const auto* like_it = std::get_if<Line>(&other.shapes[l]);
                if (!like_it || !are_like(*line, *like_it))
                    disagree(fmt::format("{} of {} has no counterpart in B", line->label, where));
                *line = line_difference(*line, *like_it, as_ratio, where);
            } else if (std::holds_alternative<Scatter>(panel.shapes[l])) {
                throw NothingToShow("A − B cannot be drawn for points; show the traces side by side instead");
            }
        }
        if (has_map && panel.x.min != other.x.min) panel.x.title += " (of A)";
        if (!has_map) set_axis(panel, as_ratio);
    }
    // Bands are not subtracted, so their legend entries are removed.
    std::erase_if(figure.legend, [](const LegendEntry& entry) { return entry.symbol == LegendEntry::Symbol::patch; });
    if (figure.shared_y) {
        for (Panel& panel : figure.panels) {
            for (const Panel& other : figure.panels) {
                panel.y.min = std::min(panel.y.min, other.y.min);
                panel.y.max = std::max(panel.y.max, other.y.max);
            }
        }
    }
    for (size_t i = 0; i < std::min(figure.color_scales.size(), sides.b.color_scales.size()); ++i) {
        std::string& of = figure.color_scales[i].of;
        if (of != sides.b.color_scales[i].of)
            of = are_two_traces ? "" : fmt::format("{} − {}", of, sides.b.color_scales[i].of);
    }
    set_limits(figure);
    set_texts(figure);
    figure.title += ", A − B";
    if (!unit.empty()) figure.title += ", " + unit;
    figure.caption = fmt::format("A − B ({}): {}", both, figure.caption);
    name_sides(figure, definition, paired);
    add_recipe(figure, sides.b, "B");
    return figure;
}

Table difference_numbers(const FigureDefinition& definition, const TracePart& a, const TracePart& b) {
    const PairedParts paired = paired_parts(definition, a, b);
    if (definition.difference_numbers) {
        Table table = definition.difference_numbers(std::array{a, b});
        Figure words;
        name_sides(words, definition, paired);
        table.title += words.title;
        return table;
    }
    const Sides sides = read_sides(definition, paired);
    const Figure drawn = make_difference(definition, a, b);
    std::vector<std::variant<SubjectKey, Column>> columns = {Column{"panel", "Panel", "", ColumnType::text}};
    const std::vector<SubjectKey> keys = keys_of(drawn);
    columns.insert(columns.end(), keys.begin(), keys.end());
    const auto axes = uncounted_axes(drawn);
    const bool has_rows = axes.first, has_x = axes.second;
    if (has_rows) columns.emplace_back(Column{"row", "Row", "", ColumnType::text});
    if (has_x) columns.emplace_back(Column{"x", "x", "", ColumnType::real, 0});
    columns.emplace_back(Column{"unit", "Unit", "", ColumnType::text});
    for (const auto& [name, title] : {std::pair{"a", "A"}, {"b", "B"}, {"difference", "A − B"}})
        columns.emplace_back(Column{name, title, "", ColumnType::real, 4});
    SubjectTable table(drawn.name + "-difference", drawn.title, std::move(columns));
    for (size_t p = 0; p < drawn.panels.size(); ++p) {
        const Panel& panel = drawn.panels[p];
        const std::string shown_title = title_of(panel, sides.b.panels[p], paired);
        const std::string title = panel.part.empty() ? shown_title : shown_title + ", " + panel.part;
        std::string unit;
        const auto add = [&](SubjectPair of, const std::string& row, double x, double in_a, double in_b, double less) {
            of.b.run = sides.b.panels[p].subject.run;
            std::vector<Cell> cells = {title};
            if (has_rows) cells.emplace_back(row);
            if (has_x) cells.emplace_back(x);
            cells.insert(cells.end(), {unit, in_a, in_b, less});
            table.add(of, std::move(cells));
        };
        for (size_t s = 0; s < sides.a.panels[p].shapes.size(); ++s) {
            const Shape& shown = panel.shapes[s];
            unit = unit_of(sides.a, sides.a.panels[p], sides.a.panels[p].shapes[s]);
            if (const auto* map = std::get_if<HeatMap>(&shown)) {
                const auto& of_a = std::get<HeatMap>(sides.a.panels[p].shapes[s]).values;
                const auto& of_b = std::get<HeatMap>(sides.b.panels[p].shapes[s]).values;
                for (size_t i = 0; i < map->values.size(); ++i) {
                    const size_t row = i / map->columns, column = i % map->columns;
                    add(subjects_of_cell(panel, *map, row, column), std::to_string(row), static_cast<double>(column),
                        static_cast<double>(of_a[i]), static_cast<double>(of_b[i]),
                        static_cast<double>(map->values[i]));
                }
            } else if (const auto* line = std::get_if<Line>(&shown)) {
                const auto& of_a = std::get<Line>(sides.a.panels[p].shapes[s]).y;
                const auto& of_b = std::get<Line>(sides.b.panels[p].shapes[s]).y;
                for (size_t i = 0; i < line->y.size(); ++i) {
                    const Subject of = subject_of_point(panel, shown, i);
                    add({of, of}, line->label, line->x[i], of_a[i], of_b[i], line->y[i]);
                }
            }
        }
    }
    return table.take();
}

}  // namespace kvscope::analysis
