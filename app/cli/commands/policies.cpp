#include <memory>
#include <string>

#include "app/cli/command.h"
#include "app/cli/option_validators.h"
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

analysis::Table parameters_of(const policies::Definition& definition) {
    analysis::Table table{definition.name,
                          definition.title,
                          {{"parameter", "Parameter", ""},
                           {"type", "Type", ""},
                           {"default", "Default", ""},
                           {"range", "Range", ""},
                           {"meaning", "Meaning", ""}},
                          {}};
    for (const auto& parameter : definition.parameters) {
        std::string range = parameter.range.text();
        for (const auto& choice : parameter.choices) range += (range.empty() ? "" : " | ") + choice;
        table.rows.push_back({{parameter.name, std::string(policies::parameter_kind_name(parameter.kind)),
                               policies::to_text(parameter.fallback), range, parameter.help}});
    }
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
            format->print(parameters_of(definition));
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
