#include "app/cli/command.h"
#include "app/cli/figures_text.h"

namespace kvscope::cli::rankings_file {
namespace {

analysis::Table table() {
    analysis::Table table{
        "rankings",
        "Rankings",
        {{"ranking", "Ranking", ""}, {"title", "Title", ""}, {"ranks", "Ranks", ""}, {"options", "Options", ""}},
        {}};
    for (const auto& definition : analysis::ranking_definitions())
        table.rows.push_back(
            {{definition.name, definition.title, definition.summary, analysis::options_in_words(definition.options)}});
    return table;
}

}  // namespace
}  // namespace kvscope::cli::rankings_file

namespace kvscope::cli {

Command rankings_command() {
    return {"rankings", "List the rankings that export can write", "  kvscope rankings",
            [](CLI::App& app) { return declare_list(app, analysis::ranking_definitions(), rankings_file::table); }};
}

}  // namespace kvscope::cli
