#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/figure_definition.h"
#include "analysis/retention.h"
#include "analysis/run_choice.h"
#include "analysis/run_style.h"
#include "analysis/table_format.h"
#include "analysis/utf8.h"

namespace kvscope::analysis {
namespace {

constexpr double kCellMm = 1.49;  // a character of the figures' monospaced font
constexpr double kLineMm = 3.5;
constexpr double kPageMm = 174;
constexpr double kMarginMm = 12;  // the numbers of the tokens
constexpr size_t kMostLines = 400;
constexpr size_t kMostColumns = 3;
constexpr Rgb kNotKept{150, 150, 150};

/// How many layers, and heads of all layers, keep each token (N).
struct Counts {
    std::vector<uint16_t> layers;
    std::vector<uint16_t> heads;
};

/// A token, or what of it stands in one line.
struct Piece {
    size_t token = 0;
    size_t line = 0;
    size_t cell = 0;
    size_t n_cells = 0;
    std::string text;
};

/// One character at a time: its bytes and its cells.
std::pair<size_t, size_t> character_at(const std::string& text, size_t at) {
    const auto [code, bytes] = utf8_character(text, at);
    if (bytes == 0) return {1, 1};
    return {bytes, static_cast<size_t>(std::max(utf8proc_charwidth(static_cast<utf8proc_int32_t>(code)), 0))};
}

/// Breaks between tokens, before a word where one begins, and inside a token only where it is wider than a line.
class Page {
 public:
    Page(const std::vector<std::string>& tokens, size_t n_tokens, size_t width) : width_(width) {
        for (size_t token = 0; token < n_tokens; ++token) add(token, tokens[token]);
        n_lines_ = line_ + 1;
    }
    const std::vector<Piece>& pieces() const { return pieces_; }
    size_t n_lines() const { return n_lines_; }

 private:
    void add(size_t token, const std::string& text) {
        if (!text.empty() && text.front() == ' ') word_ = pieces_.size();
        Piece piece{token, line_, cell_, 0, ""};
        for (size_t at = 0; at < text.size();) {
            const auto [bytes, cells] = character_at(text, at);
            if (text[at] == '\n') {
                put(piece);
                ++line_;
                cell_ = 0;
                word_ = pieces_.size();
                piece = {token, line_, cell_, 0, ""};
            } else {
                if (piece.n_cells + cells > width_) {
                    put(piece);
                    piece = {token, line_, cell_, 0, ""};
                }
                piece.text += text.substr(at, bytes);
                piece.n_cells += cells;
            }
            at += bytes;
        }
        put(piece);
    }

    void put(Piece piece) {
        if (piece.text.empty()) return;
        if (cell_ + piece.n_cells > width_ && cell_ > 0) {
            ++line_;
            cell_ = 0;
            const bool is_word_in_line =
                word_ < pieces_.size() && pieces_[word_].line + 1 == line_ && pieces_[word_].cell > 0;
            for (size_t i = is_word_in_line ? word_ : pieces_.size(); i < pieces_.size(); ++i) {
                pieces_[i].line = line_;
                pieces_[i].cell = cell_;
                cell_ += pieces_[i].n_cells;
            }
            if (cell_ + piece.n_cells > width_ && cell_ > 0) {
                ++line_;
                cell_ = 0;
            }
        }
        piece.line = line_;
        piece.cell = cell_;
        cell_ += piece.n_cells;
        pieces_.push_back(std::move(piece));
    }

    size_t width_;
    std::vector<Piece> pieces_;
    size_t line_ = 0;
    size_t cell_ = 0;
    size_t word_ = 0;  ///< first piece of the current word
    size_t n_lines_ = 0;
};

struct Shown {
    std::vector<int> runs;
    std::vector<Counts> counts;  ///< for each of `runs`
    size_t n_tokens = 0;
    bool by_heads = false;
    int most = 0;
};

Shown read_shown(const trace::Reader& reader, const FigureOptions& options) {
    Shown shown;
    shown.runs = chosen_runs(reader, options);
    if (options.runs.empty()) shown.runs.resize(1);
    shown.by_heads = options.source == "heads";
    if (!options.source.empty() && options.source != "layers" && !shown.by_heads)
        throw FigureError(fmt::format("prompt has no source '{}'; there are layers, heads", options.source));
    shown.n_tokens = static_cast<size_t>(reader.prompt(options.prompt).visible_tokens());
    for (const int run : shown.runs) {
        const auto kept = reader.kept(options.prompt, run);
        const KeptSets sets = kept_sets(*kept, shown.n_tokens);
        shown.counts.push_back({layer_counts(sets), head_counts(sets)});
        const size_t most = shown.by_heads ? kept->n_layers * kept->n_rows : kept->n_layers;
        shown.most = std::max(shown.most, static_cast<int>(most));
    }
    return shown;
}

Rgb ink_of(const ColorScale& scale, int value) {
    if (value < 1) return kNotKept;
    const double share = scale.max > scale.min ? (value - scale.min) / (scale.max - scale.min) : 1;
    return ink_on(color_at(scale.map, scale.map_begin + share * (scale.map_end - scale.map_begin)));
}

Panel panel_of(const Page& page, const std::vector<uint16_t>& values, const ColorScale& scale, size_t width) {
    HeatMap map;
    map.rows = page.n_lines();
    map.columns = width;
    map.values.assign(map.rows * map.columns, std::numeric_limits<float>::quiet_NaN());
    map.x_begin = 0;
    map.x_end = static_cast<double>(width);
    map.y_begin = 0;
    map.y_end = static_cast<double>(map.rows);
    Panel panel;
    panel.x.max = map.x_end;
    panel.x.ticks = {{0, ""}};
    panel.y.max = map.y_end;
    panel.y.reversed = true;
    panel.y.title = "Token";
    std::vector<TextLabel> labels;
    size_t next_number = 0;
    for (const Piece& piece : page.pieces()) {
        const int value = values[piece.token];
        for (size_t cell = piece.cell; cell < std::min(piece.cell + piece.n_cells, width); ++cell)
            map.values[piece.line * width + cell] = static_cast<float>(value);
        const double middle = static_cast<double>(piece.cell) + static_cast<double>(piece.n_cells) / 2;
        labels.push_back({middle, static_cast<double>(piece.line) + 0.5, piece.text, ink_of(scale, value), true});
        if (piece.cell == 0 && piece.line >= next_number) {
            panel.y.ticks.push_back(
                {static_cast<double>(piece.line) + 0.5, format_count(static_cast<int64_t>(piece.token))});
            next_number = piece.line + 5;
        }
    }
    panel.layers.emplace_back(std::move(map));
    for (auto& label : labels) panel.layers.emplace_back(std::move(label));
    return panel;
}

Figure make(const trace::Reader& reader, const FigureOptions& options) {
    const Shown shown = read_shown(reader, options);
    Figure figure;
    figure.name = "prompt";
    figure.title = "The prompt by how much of it is kept";
    figure.columns = std::min(shown.runs.size(), kMostColumns);
    figure.rows = (shown.runs.size() + figure.columns - 1) / figure.columns;
    figure.shared_y = true;
    const double page_mm = options.width_mm > 0 ? options.width_mm : kPageMm;
    const double columns = static_cast<double>(figure.columns);
    const auto width = static_cast<size_t>(std::max((page_mm - kMarginMm - 3 * columns) / columns / kCellMm, 8.0));
    const Page page(reader.token_text(options.prompt), shown.n_tokens, width);
    if (page.n_lines() > kMostLines)
        throw NothingToShow(fmt::format("a prompt of {} tokens takes {} lines, and {} are the most that a figure has",
                                        format_count(static_cast<int64_t>(shown.n_tokens)), page.n_lines(),
                                        kMostLines));
    ColorScale scale;
    scale.map_begin = 0.1;
    scale.min = 1;
    scale.max = std::max(shown.most, 2);
    scale.title = shown.by_heads ? "Heads of all layers that keep the token" : "Layers that keep the token";
    scale.background_label = "none";
    figure.color_scales.push_back(scale);
    for (size_t i = 0; i < shown.runs.size(); ++i) {
        const Counts& counts = shown.counts[i];
        Panel panel = panel_of(page, shown.by_heads ? counts.heads : counts.layers, scale, width);
        panel.row = i / figure.columns;
        panel.column = i % figure.columns;
        panel.title = run_label(reader.run(options.prompt, shown.runs[i]));
        figure.panels.push_back(std::move(panel));
    }
    figure.width_mm = kPageMm;
    figure.panel_height_mm = kLineMm * static_cast<double>(page.n_lines());
    figure.caption = fmt::format("The prompt's {} tokens, each on a ground that says how many {} keep it; grey: none.",
                                 format_count(static_cast<int64_t>(shown.n_tokens)),
                                 shown.by_heads ? "heads of all layers" : "layers (in at least one head)");
    complete_figure(figure, reader, options, shown.runs);
    return figure;
}

Table numbers(const trace::Reader& reader, const FigureOptions& options) {
    const Shown shown = read_shown(reader, options);
    const auto texts = reader.token_text(options.prompt);
    const auto ids = reader.token_ids(options.prompt);
    Table table;
    table.name = "prompt";
    table.title = "Layers and heads that keep each token";
    table.columns = {{"label", "Label", ""},
                     {"token", "Token", "", ColumnType::integer},
                     {"id", "Id", "", ColumnType::integer},
                     {"text", "Text", ""},
                     {"layers", "Layers", "", ColumnType::integer},
                     {"heads", "Heads of all layers", "", ColumnType::integer}};
    for (size_t i = 0; i < shown.runs.size(); ++i) {
        const std::string label = run_label(reader.run(options.prompt, shown.runs[i]));
        for (size_t token = 0; token < shown.n_tokens; ++token)
            table.rows.push_back({{label, static_cast<int64_t>(token), int64_t{ids[token]}, texts[token],
                                   int64_t{shown.counts[i].layers[token]}, int64_t{shown.counts[i].heads[token]}}});
    }
    return table;
}

}  // namespace

FigureDefinition prompt_figure() {
    return {"prompt",
            "Prompt",
            "The prompt itself, each token on a ground that says how many layers, or heads, keep it",
            {{"runs", "labels, policies or numbers of runs, side by side; default: the first"},
             {"source", "what the colour counts", {"layers", "heads"}}},
            make,
            numbers,
            "K-VEC, Figure 3"};
}

}  // namespace kvscope::analysis
