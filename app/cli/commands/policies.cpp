#include <memory>
#include <string>

#include "app/cli/command.h"
#include "app/cli/option_validators.h"
#include "app/cli/parameter_table.h"
#include "app/cli/table_format_option.h"
#include "policies/registry/describe.h"
#include "policies/registry/registry.h"

namespace kvscope::cli::policies_file {
namespace {

using analysis::Cell;

analysis::Table list_of_policies() {
    analysis::Table table{
        "policies", "Policies", {{"policy", "Policy", ""}, {"paper", "Paper", ""}, {"keeps", "Keeps", ""}}, {}};
    for (const auto& definition : policies::definitions())
        table.rows.push_back({{definition.name, definition.paper, definition.summary}});
    return table;
}

std::function<int()> declare(CLI::App& app) {
    const auto name = std::make_shared<std::string>();
    const auto format = std::make_shared<OutputFormat>();
    suggest(app.add_option("policy", *name, "Policy to describe, with its parameters (default: list all policies)"),
            defined_names(policies::definitions()));
    format->declare(app);
    return [name, format] {
        if (!name->empty()) {
            const auto& definition = policies::definition_named(*name);
            if (format->is_text())
                print(definition.title + ": " + definition.summary +
                      (definition.remark.empty() ? "" : " " + definition.remark) + "\n" + definition.paper +
                      (definition.paper.empty() ? "\n" : "\n\n"));
            format->print(parameter_table(definition.name, definition.title, definition.parameters));
        } else if (format->name() == "md") {
            print(policies::policies_markdown(policies::definitions()));
        } else {
            format->print(list_of_policies());
        }
        return 0;
    };
}

}  // namespace
}  // namespace kvscope::cli::policies_file

namespace kvscope::cli {

Command policies_command() {
    using namespace policies_file;
    return {"policies", "List the policies, or the parameters of one policy",
            "  kvscope policies\n  kvscope policies aperturekv\n  kvscope policies --format md", declare};
}

}  // namespace kvscope::cli
