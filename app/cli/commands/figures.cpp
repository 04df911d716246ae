#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>

#include "analysis/figure_definition.h"
#include "app/cli/command.h"
#include "app/cli/figures_text.h"
#include "app/cli/table_format_option.h"
#include "app/cli/terminal.h"

namespace kvscope::cli::figures_file {
namespace {

std::function<int()> declare(CLI::App& app) {
    const auto format = std::make_shared<OutputFormat>();
    format->declare(app);
    return [format] {
        if (format->is_text()) {
            const size_t columns = terminal_width();
            print(columns == 0 ? figures_text() : figures_text(std::min<size_t>(columns, 100)));
            return 0;
        }
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
        format->print(table);
        return 0;
    };
}

}  // namespace
}  // namespace kvscope::cli::figures_file

namespace kvscope::cli {

Command figures_command() {
    using namespace figures_file;
    return {"figures", "List the figures that export can draw", "  kvscope figures", declare};
}

}  // namespace kvscope::cli
