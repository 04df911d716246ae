#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>

#include "app/cli/command.h"
#include "app/cli/figures_text.h"
#include "app/cli/table_format_option.h"
#include "app/cli/terminal.h"
#include "app/papers/item_figure.h"
#include "app/papers/paper.h"

namespace kvscope::cli::figures_file {
namespace {

struct Arguments {
    OutputFormat format;
    std::string paper;
};

analysis::Table table_of_figures() {
    analysis::Table table{
        "figures",
        "Figures",
        {{"figure", "Figure", ""}, {"shows", "Shows", ""}, {"options", "Options", ""}, {"sources", "Sources", ""}},
        {}};
    for (const auto& definition : analysis::figure_definitions()) {
        const auto* source = analysis::find_option(definition, "source");
        table.rows.push_back({{definition.name, definition.summary, analysis::options_in_words(definition.options),
                               source ? fmt::format("{}", fmt::join(source->choices, ", ")) : ""}});
    }
    return table;
}

/// @param paper name of the paper; empty: all papers
analysis::Table table_of_items(const std::string& paper) {
    analysis::Table table{"items",
                          "Figures and tables of papers",
                          {{"item", "Item", ""},
                           {"shows", "Shows", ""},
                           {"made_with", "Made with", ""},
                           {"possible", "Possible", ""},
                           {"remark", "Remark", ""}},
                          {}};
    const auto add = [&](const papers::Paper& one) {
        for (const papers::PaperItem& item : one.items)
            table.rows.push_back({{item.full_id(), item.shows, item.figure.empty() ? item.command : item.figure,
                                   std::string(item.state()), item.cannot.empty() ? item.lacks : item.cannot}});
    };
    if (paper.empty())
        std::ranges::for_each(papers::all_papers(), add);
    else
        add(papers::paper_named(paper));
    return table;
}

std::string text_of_items() {
    constexpr size_t name_columns = 17, made_with_columns = 18;
    const size_t columns = list_columns();
    std::string text = "\n" + wrapped(
                                  "Figures and tables of papers. `kvscope figures --paper NAME` says how each differs "
                                  "from the paper's.",
                                  "", 0, columns);
    for (const papers::Paper& paper : papers::all_papers()) {
        text += "\n" + wrapped(paper.heading(), "", 0, columns);
        for (const papers::PaperItem& item : paper.items) {
            const std::string& made_with = !item.cannot.empty()  ? "–"
                                           : item.figure.empty() ? item.command
                                                                 : item.figure;
            text += wrapped(item.shows, fmt::format("    {:<{}}{}", item.full_id(), name_columns, made_with),
                            4 + name_columns + made_with_columns, columns);
        }
    }
    return text;
}

std::function<int()> declare(CLI::App& app) {
    const auto arguments = std::make_shared<Arguments>();
    arguments->format.declare(app);
    app.add_option("--paper", arguments->paper, "List only the figures and tables of a paper, or of all papers (all)")
        ->type_name("PAPER");
    return [arguments] {
        const bool is_text = arguments->format.is_text();
        if (!arguments->paper.empty())
            arguments->format.print(table_of_items(arguments->paper == "all" ? "" : arguments->paper));
        else if (is_text)
            print(list_text(analysis::figure_definitions()) + text_of_items());
        else
            arguments->format.print(table_of_figures());
        return 0;
    };
}

}  // namespace
}  // namespace kvscope::cli::figures_file

namespace kvscope::cli {

Command figures_command() {
    return {"figures", "List the figures that export can draw", "  kvscope figures\n  kvscope figures --paper K-VEC",
            figures_file::declare};
}

}  // namespace kvscope::cli
