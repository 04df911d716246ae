// What people write behind options, a line each: lists of layers, budgets and policies.
#include <string>
#include <vector>

#include "app/cli/arguments.h"
#include "app/program/number_list.h"
#include "policies/api/budget.h"
#include "policies/api/parameters.h"
#include "policies/registry/registry.h"
#include "tests/fuzz/reader.h"

namespace kvscope::fuzz {

Reader command_line_reader() {
    return {"command_line", [](std::string_view bytes) {
                std::vector<std::string> lines(1);
                for (const char c : bytes) {
                    if (c == '\n') {
                        lines.emplace_back();
                    } else if (c != '\0') {
                        lines.back() += c;
                    }
                }
                cli::arguments_in_canonical_form(lines);
                for (const std::string& line : lines) {
                    may_refuse_argument([&] { (void)program::number_list(line); });
                    may_refuse_argument([&] {
                        for (const auto& budget : policies::parse_budgets(line)) {
                            budget.text();
                            may_refuse_argument([&] { budget.describe(1000); });
                        }
                    });
                    may_refuse_argument([&] {
                        const auto spec = policies::parse_policy(line);
                        const std::string json = spec.values.to_json();
                        policies::ParameterValues::from_json(spec.values.declared(), json);
                        spec.values.text_of_changes();
                        spec.create();
                    });
                    may_refuse_argument([&] {
                        const auto spec = policies::parse_policy("aperturekv");
                        policies::ParameterValues::from_json(spec.values.declared(), line);
                    });
                }
            }};
}

}  // namespace kvscope::fuzz
