#include <memory>

#include "app/cli/command.h"
#include "app/cli/figures_text.h"
#include "app/cli/table_format_option.h"
#include "app/cli/terminal.h"

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

std::function<int()> declare(CLI::App& app) {
    const auto format = std::make_shared<OutputFormat>();
    format->declare(app);
    return [format] {
        if (format->is_text())
            print(list_text(analysis::ranking_definitions()));
        else
            format->print(table());
        return 0;
    };
}

}  // namespace
}  // namespace kvscope::cli::rankings_file

namespace kvscope::cli {

Command rankings_command() {
    return {"rankings", "List the rankings that export can write", "  kvscope rankings", rankings_file::declare};
}

}  // namespace kvscope::cli
