#include <fmt/format.h>

#include "app/cli/command.h"
#include "app/cli/figures_text.h"

namespace kvscope::cli::figures_file {
namespace {

analysis::Table table() {
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

}  // namespace
}  // namespace kvscope::cli::figures_file

namespace kvscope::cli {

Command figures_command() {
    return {"figures", "List the figures that export can draw", "  kvscope figures",
            [](CLI::App& app) { return declare_list(app, analysis::figure_definitions(), figures_file::table); }};
}

}  // namespace kvscope::cli
