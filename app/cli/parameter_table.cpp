#include "app/cli/parameter_table.h"

namespace kvscope::cli {

analysis::Table parameter_table(const std::string& name, const std::string& title,
                                const std::vector<policies::Parameter>& parameters) {
    analysis::Table table{name,
                          title,
                          {{"parameter", "Parameter", ""},
                           {"type", "Type", ""},
                           {"default", "Default", ""},
                           {"range", "Range", ""},
                           {"meaning", "Meaning", ""}},
                          {}};
    for (const auto& parameter : parameters) {
        std::string range = parameter.range.text();
        for (const auto& choice : parameter.choices) range += (range.empty() ? "" : " | ") + choice;
        std::string fallback = policies::to_text(parameter.fallback);
        if (!parameter.automatic.empty() && fallback == "auto") fallback += " (" + parameter.automatic + ")";
        table.rows.push_back({{parameter.name, std::string(policies::parameter_kind_name(parameter.kind)), fallback,
                               range, parameter.help}});
    }
    return table;
}

}  // namespace kvscope::cli
