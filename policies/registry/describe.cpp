#include "policies/registry/describe.h"

namespace kvscope::policies {

namespace {

std::string escaped(const std::string& text) {
    std::string result;
    for (char c : text) {
        if (c == '|') result += '\\';
        result += c;
    }
    return result;
}

}  // namespace

std::string accepted_values(const Parameter& parameter) {
    std::string text;
    switch (parameter.kind) {
        case ParameterKind::boolean:
            return "on or off";
        case ParameterKind::text:
        case ParameterKind::file:
        case ParameterKind::seed:
            return std::string(parameter_kind_name(parameter.kind));
        case ParameterKind::choice:
            for (size_t i = 0; i < parameter.choices.size(); ++i) {
                text += (i == 0 ? "" : i + 1 == parameter.choices.size() ? " or " : ", ") + parameter.choices[i];
            }
            return text;
        case ParameterKind::integer:
        case ParameterKind::real:
        case ParameterKind::integers:
        case ParameterKind::reals:
            text = std::string(parameter_kind_name(parameter.kind));
            if (const std::string range = parameter.range.text(); !range.empty()) text += ", " + range;
            if (!parameter.automatic.empty()) text += ", or auto: " + parameter.automatic;
            return text;
    }
    return text;
}

std::string policies_markdown(const std::vector<Definition>& definitions) {
    std::string page =
        "# Policies\n\nThis page is generated from the policies' declarations with `kvscope policies --format md`. A "
        "test checks that the page\nis up to date. Select a policy with `--policy "
        "name:parameter=value,parameter=value`, and several with\n`--policy snapkv:window=8,h2o`. In names, `_` and "
        "`-` are interchangeable.\n\nA budget B is the number of entries that are kept per KV head and layer. B "
        "includes the window and the sinks. For\npolicies that keep every token, the budget is a share of the full "
        "cache's bytes, as noted below. The window is the last\nw tokens of the prompt, and the prefix is the rest. A "
        "policy keeps c = B - w entries of the prefix.\n";
    for (const Definition& definition : definitions) {
        page += "\n## " + definition.name + "\n\n" + definition.title + ". " + definition.summary +
                (definition.remark.empty() ? "" : " " + definition.remark) + "\n";
        if (!definition.paper.empty()) page += "\n" + definition.paper + ".\n";
        if (definition.budget_of == BudgetOf::bytes)
            page += "\nThis policy keeps every token, and its budget is a share of the full cache's bytes.\n";
        if (definition.parameters.empty()) continue;
        page += "\n| parameter | default | values | meaning |\n|---|---|---|---|\n";
        for (const Parameter& parameter : definition.parameters) {
            page += "| `" + parameter.name + "` | " + to_text(parameter.fallback) + " | " +
                    escaped(accepted_values(parameter)) + " | " + escaped(parameter.help) + " |\n";
        }
    }
    return page;
}

}  // namespace kvscope::policies
