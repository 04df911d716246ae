#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "analysis/drawing/figure_definition.h"
#include "analysis/drawing/subject_columns.h"
#include "analysis/measures/heads_keeping_token.h"
#include "analysis/runs/run_choice.h"
#include "analysis/runs/run_style.h"
#include "analysis/tables/broken_text.h"
#include "analysis/tables/table_format.h"
#include "analysis/tables/token_text.h"

namespace kvscope::analysis {
namespace {

constexpr double character_mm = 1.49;  // width of a character in the figures' monospaced font
constexpr double line_mm = 3.5;
constexpr double page_width_mm = 174;
constexpr double page_height_mm = 230;   // A4 without margins and caption
constexpr double color_bar_mm = 12;      // color bar with its numbers
constexpr double title_mm = 6;           // above each row of runs
constexpr double token_numbers_mm = 12;  // space for the token numbers
constexpr size_t most_columns = 3;
constexpr Rgb not_kept_color{150, 150, 150};

/// Number of layers and number of heads that keep each token (N). Each of n tokens in an entry counts as 1/n.
struct Counts {
    std::vector<double> layers;
    std::vector<double> heads;
};

struct Arrangement {
    std::vector<int> runs;
    size_t n_tokens = 0;
    size_t columns = 1;     ///< number of runs side by side
    size_t characters = 0;  ///< number of characters per line
    BrokenText text;
    size_t lines_a_page = 1;
    size_t pages_a_run = 1;
    size_t rows_a_page = 1;  ///< rows of runs; above 1 only if each run fits on one page
    size_t n_rows() const { return (runs.size() + columns - 1) / columns; }
};

struct Shown {
    std::vector<Counts> counts;  ///< one per run of the arrangement
    bool by_heads = false;
    std::vector<size_t> n_heads;  ///< number of heads in all layers, one per run
    bool is_share = false;        ///< Whether counts of heads are in per cent of `n_heads`.
    int most = 0;
    bool merges = false;  ///< Whether at least one run merges.
    const std::vector<double>& values(size_t run) const { return by_heads ? counts[run].heads : counts[run].layers; }
};

bool by_heads(const FigureOptions& options) {
    if (options.source.empty() || options.source == "layers") return false;
    if (options.source == "heads") return true;
    throw FigureError(fmt::format("the figure prompt has no source '{}'; it has layers, heads", options.source));
}

std::vector<int> shown_runs(const trace::Reader& reader, const FigureOptions& options) {
    std::vector<int> runs = chosen_runs(reader, options);
    if (options.runs.empty()) runs.resize(1);
    return runs;
}

Arrangement arrange(const trace::Reader& reader, const FigureOptions& options) {
    std::vector<int> runs = shown_runs(reader, options);
    const auto n_tokens = static_cast<size_t>(reader.prompt(options.prompt).visible_tokens());
    const size_t columns = std::min(runs.size(), most_columns);
    const double width_mm = options.width_mm > 0 ? options.width_mm : page_width_mm;
    const double height_mm = options.height_mm > 0 ? options.height_mm : page_height_mm;
    const auto n = static_cast<double>(columns);
    const auto characters =
        static_cast<size_t>(std::max((width_mm - token_numbers_mm - 3 * n) / n / character_mm, 8.0));
    Arrangement all{std::move(runs), n_tokens, columns, characters,
                    BrokenText(reader.token_text(options.prompt), n_tokens, characters)};
    const size_t n_lines = all.text.n_lines();
    const double room_mm = height_mm - color_bar_mm;
    const auto most_lines = static_cast<size_t>(std::max((room_mm - title_mm) / line_mm, 1.0));
    all.pages_a_run = (n_lines + most_lines - 1) / most_lines;
    all.lines_a_page = (n_lines + all.pages_a_run - 1) / all.pages_a_run;
    if (all.pages_a_run == 1) {
        const double row_mm = static_cast<double>(n_lines) * line_mm + title_mm;
        all.rows_a_page = std::clamp<size_t>(static_cast<size_t>(room_mm / row_mm), 1, all.n_rows());
    }
    return all;
}

void check(const trace::Reader& reader, const FigureOptions& options) {
    by_heads(options);
    chosen_runs(reader, options);
}

std::string own_choice(const trace::Reader& reader, const FigureOptions& options) {
    if (!options.runs.empty()) return "";
    const std::vector<int> all = chosen_runs(reader, options);
    if (all.size() < 2) return "";
    return fmt::format("only {}, the first of {} runs", run_label(reader.run(options.prompt, all.front())), all.size());
}

Shown read_shown(const trace::Reader& reader, const FigureOptions& options, const Arrangement& arrangement) {
    Shown shown;
    shown.by_heads = by_heads(options);
    for (const int run : arrangement.runs) {
        const auto kept = reader.kept(options.prompt, run);
        const KeptSets sets = kept_sets(*kept, arrangement.n_tokens);
        shown.counts.push_back({count_layers_keeping_token(sets), heads_keeping(sets)});
        shown.n_heads.push_back(kept->n_layers * kept->n_rows);
        const size_t most = shown.by_heads ? shown.n_heads.back() : kept->n_layers;
        shown.most = std::max(shown.most, static_cast<int>(most));
        shown.merges = shown.merges || kept->merges();
    }
    return shown;
}

void count_in_one_unit(Shown& shown, const FigureOptions& options) {
    const std::vector<size_t>& n = shown.n_heads;
    const bool have_same_heads = std::adjacent_find(n.begin(), n.end(), std::not_equal_to<>()) == n.end();
    shown.is_share = shown.by_heads && (options.common_unit || !have_same_heads);
    for (size_t i = 0; shown.is_share && i < n.size(); ++i)
        for (double& count : shown.counts[i].heads) count *= 100.0 / static_cast<double>(n[i]);
}

Rgb ink_of(const ColorScale& scale, double value) {
    if (!(value > 0)) return not_kept_color;
    return ink_on(color_at(scale.map, position_on_scale(scale, value)));
}

TextLabel begin_label(const Subject& of, const BrokenText::Piece& piece, size_t line) {
    Subject subject = of;
    subject.token = static_cast<int>(piece.token);
    TextLabel label{
        .x = static_cast<double>(piece.cell), .y = static_cast<double>(line) + 0.5, .text = "", .color = {}};
    label.monospace = true;
    label.is_right_to_left = piece.is_right_to_left;
    label.subject = subject;
    return label;
}

/// Appends a piece to a label. Letters that join across tokens form one label, with one color per token.
void add_to_label(TextLabel& label, const BrokenText::Piece& piece, Rgb ink) {
    const bool is_first = label.text.empty();
    const auto cells = static_cast<double>(piece.n_cells);
    const double left = is_first ? label.x : std::min(label.x - label.width / 2, static_cast<double>(piece.cell));
    const double first_middle = label.x;
    label.width += cells;
    label.x = left + label.width / 2;
    if (is_first)
        label.color = ink;
    else if (label.inks.empty())
        label.inks.push_back({label.text.size(), label.color, first_middle});
    const std::string_view text = piece.text;
    const bool has_rest =
        !is_first && text.starts_with(continuation_mark);  // the preceding piece shows the whole character
    label.text += has_rest ? text.substr(continuation_mark.size()) : text;
    if (!is_first) label.inks.push_back({label.text.size(), ink, static_cast<double>(piece.cell) + cells / 2});
}

Panel panel_of(const Arrangement& arrangement, const Subject& of, size_t part, const std::vector<double>& values,
               const ColorScale& scale) {
    const size_t first_line = part * arrangement.lines_a_page;
    const size_t width = arrangement.characters;
    HeatMap map;
    map.rows = arrangement.lines_a_page;
    map.columns = width;
    map.values.assign(map.rows * map.columns, std::numeric_limits<float>::quiet_NaN());
    map.x_begin = 0;
    map.x_end = static_cast<double>(width);
    map.y_begin = 0;
    map.y_end = static_cast<double>(map.rows);
    Panel panel;
    panel.subject = of;
    panel.x.max = map.x_end;
    panel.x.ticks = {{0, ""}};
    panel.y.max = map.y_end;
    panel.y.reversed = true;
    panel.y.title = "Token";
    std::vector<TextLabel> labels;
    size_t next_number = 0;
    size_t first_token = arrangement.n_tokens, last_token = 0;
    const auto& pieces = arrangement.text.pieces();
    for (size_t i = 0; i < pieces.size(); ++i) {
        const BrokenText::Piece& piece = pieces[i];
        if (piece.line < first_line || piece.line >= first_line + map.rows) continue;
        const size_t line = piece.line - first_line;
        const double value = values[piece.token];
        for (size_t cell = piece.cell; cell < std::min(piece.cell + piece.n_cells, width); ++cell)
            map.values[line * width + cell] = static_cast<float>(value);
        if (i == 0 || !pieces[i - 1].joins_next) labels.push_back(begin_label(of, piece, line));
        add_to_label(labels.back(), piece, ink_of(scale, value));
        first_token = std::min(first_token, piece.token);
        last_token = std::max(last_token, piece.token);
        if (piece.begins_line && line >= next_number) {
            panel.y.ticks.push_back({static_cast<double>(line) + 0.5, format_count(static_cast<int64_t>(piece.token))});
            next_number = line + 5;
        }
    }
    if (panel.y.ticks.empty()) panel.y.ticks.push_back({0, ""});  // a page with only line breaks
    if (arrangement.pages_a_run > 1 && first_token < arrangement.n_tokens) {
        if (part + 1 == arrangement.pages_a_run)
            last_token = arrangement.n_tokens - 1;  // the last tokens may have no visible text
        panel.note = fmt::format("tokens {} to {}", format_count(static_cast<int64_t>(first_token)),
                                 format_count(static_cast<int64_t>(last_token)));
    }
    panel.shapes.emplace_back(std::move(map));
    for (auto& label : labels) panel.shapes.emplace_back(std::move(label));
    return panel;
}

ColorScale scale_of(const Shown& shown) {
    ColorScale scale;
    scale.map_begin = 0.1;
    scale.min = 1;
    scale.max = std::max(shown.most, 2);
    scale.title = shown.by_heads ? "Heads of all layers that keep the token" : "Layers that keep the token";
    scale.background_label = "none";
    if (shown.is_share) {
        scale.title = "Share of heads of all layers that keep the token";
        scale.unit = "%";
        scale.min = 100.0 / shown.most;
        scale.max = 100;
    }
    if (!shown.merges) return scale;
    scale.title += " (1/n if n tokens merge)";
    double least = scale.min;
    for (size_t run = 0; run < shown.counts.size(); ++run) {
        const std::vector<double>& values = shown.values(run);
        for (const double value : values)
            if (value > 0) least = std::min(least, value);
    }
    begin_log_scale_at(scale, least);
    return scale;
}

Figure make(const trace::Reader& reader, const FigureOptions& options) {
    const Arrangement arrangement = arrange(reader, options);
    Shown shown = read_shown(reader, options, arrangement);
    count_in_one_unit(shown, options);
    Figure figure;
    figure.name = "prompt";
    figure.title = "Prompt text colored by retention";
    figure.columns = arrangement.columns;
    figure.rows = arrangement.rows_a_page;
    figure.shared_y = true;
    figure.color_scales.push_back(scale_of(shown));
    for (size_t i = 0; i < arrangement.runs.size(); ++i) {
        const size_t row = i / arrangement.columns;
        for (size_t part = 0; part < arrangement.pages_a_run; ++part) {
            Panel panel = panel_of(arrangement, Subject{.run = arrangement.runs[i]}, part, shown.values(i),
                                   figure.color_scales.front());
            panel.page = row / arrangement.rows_a_page * arrangement.pages_a_run + part;
            panel.row = row % arrangement.rows_a_page;
            panel.column = i % arrangement.columns;
            panel.title = run_label(reader.run(options.prompt, arrangement.runs[i]));
            figure.panels.push_back(std::move(panel));
        }
    }
    figure.width_mm = page_width_mm;
    figure.panel_height_mm = line_mm * static_cast<double>(arrangement.lines_a_page);
    figure.caption = fmt::format(
        "The prompt's {} tokens. The background color shows how many {} keep each token. Gray tokens are not kept.",
        format_count(static_cast<int64_t>(arrangement.n_tokens)),
        shown.by_heads ? "heads of all layers" : "layers (in at least one head)");
    if (shown.merges)
        figure.caption += fmt::format(" A token in a merged entry of n tokens counts as 1/n{}.",
                                      shown.by_heads ? "" : "; in a layer, the head with the largest part counts");
    const auto has_mark = [](const Shape& shape) {
        const auto* label = std::get_if<TextLabel>(&shape);
        return label && label->text.find(continuation_mark) != std::string::npos;
    };
    if (std::any_of(figure.panels.begin(), figure.panels.end(), [&](const Panel& panel) {
            return std::any_of(panel.shapes.begin(), panel.shapes.end(), has_mark);
        }))
        figure.caption += fmt::format(
            " If several tokens share a character, the first token shows the character; {} marks the other tokens.",
            continuation_mark);
    complete_figure(figure, reader, options, arrangement.runs);
    return figure;
}

Table numbers(const trace::Reader& reader, const FigureOptions& options) {
    const Arrangement arrangement = arrange(reader, options);
    const Shown shown = read_shown(reader, options, arrangement);
    const auto texts = reader.token_text(options.prompt);
    const auto ids = reader.token_ids(options.prompt);
    const ColumnType type = shown.merges ? ColumnType::real : ColumnType::integer;
    SubjectTable table("prompt",
                       "Number of layers and heads that keep each token. Each of n merged tokens counts as 1/n",
                       {SubjectKey::run, label_column(), SubjectKey::token, Column{"id", "Id", "", ColumnType::integer},
                        Column{"text", "Text", ""}, Column{"layers", "Layers", "", type, 2},
                        Column{"heads", "Heads of all layers", "", type, 2}});
    const auto cell = [&](double count) { return shown.merges ? Cell(count) : Cell(std::llround(count)); };
    for (size_t i = 0; i < arrangement.runs.size(); ++i) {
        const std::string label = run_label(reader.run(options.prompt, arrangement.runs[i]));
        for (size_t token = 0; token < arrangement.n_tokens; ++token)
            table.add(Subject{.run = arrangement.runs[i], .token = static_cast<int>(token)},
                      {label, int64_t{ids[token]}, texts[token], cell(shown.counts[i].layers[token]),
                       cell(shown.counts[i].heads[token])});
    }
    return table.take();
}

}  // namespace

FigureDefinition prompt_figure() {
    FigureDefinition definition{
        "prompt",
        "Prompt",
        "Text of the prompt, in colors that show how many layers or heads keep each token",
        {{"runs", "runs, by label, policy or number, side by side; default: the first"},
         {"source", "what the color counts: layers or heads that keep the token", {"layers", "heads"}}},
        check,
        make,
        numbers,
        "K-VEC, Figure 3",
        nullptr,
        nullptr,
        nullptr,
        own_choice,
        false,
        true};
    definition.shown_runs = shown_runs;
    return definition;
}

}  // namespace kvscope::analysis
