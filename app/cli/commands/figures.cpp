#include <memory>
#include <string>

#include "analysis/figure_definition.h"
#include "app/cli/command.h"
#include "app/cli/output_option.h"

namespace kvscope::cli {
namespace {

std::function<int()> declare(CLI::App& app) {
    const auto format = std::make_shared<OutputFormat>();
    format->declare(app);
    return [format] {
        analysis::Table table{
            "figures", "Figures", {{"figure", "Figure", ""}, {"shows", "Shows", ""}, {"options", "Options", ""}}, {}};
        for (const auto& definition : analysis::figure_definitions()) {
            std::string options;
            for (const auto& option : definition.options) options += (options.empty() ? "--" : ", --") + option.name;
            table.rows.push_back({{definition.name, definition.summary, options}});
        }
        format->print(table);
        return 0;
    };
}

}  // namespace

Command figures_command() { return {"figures", "The figures that export can draw", "  kvscope figures", declare}; }

}  // namespace kvscope::cli
