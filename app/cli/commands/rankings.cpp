#include <algorithm>
#include <memory>
#include <string>

#include "analysis/ranking_definition.h"
#include "app/cli/command.h"
#include "app/cli/export_ranking.h"
#include "app/cli/table_format_option.h"
#include "app/cli/terminal.h"

namespace kvscope::cli::rankings_file {
namespace {

std::function<int()> declare(CLI::App& app) {
    const auto format = std::make_shared<OutputFormat>();
    format->declare(app);
    return [format] {
        if (format->is_text()) {
            const size_t columns = terminal_width();
            print(columns == 0 ? rankings_text() : rankings_text(std::min<size_t>(columns, 100)));
            return 0;
        }
        analysis::Table table{
            "rankings",
            "Rankings",
            {{"ranking", "Ranking", ""}, {"title", "Title", ""}, {"ranks", "Ranks", ""}, {"options", "Options", ""}},
            {}};
        for (const auto& definition : analysis::ranking_definitions())
            table.rows.push_back({{definition.name, definition.title, definition.summary,
                                   analysis::options_in_words(definition.options)}});
        format->print(table);
        return 0;
    };
}

}  // namespace
}  // namespace kvscope::cli::rankings_file

namespace kvscope::cli {

Command rankings_command() {
    using namespace rankings_file;
    return {"rankings", "List the rankings that export can write", "  kvscope rankings", declare};
}

}  // namespace kvscope::cli
