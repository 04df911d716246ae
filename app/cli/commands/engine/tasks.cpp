#include <memory>
#include <string>

#include "app/cli/command.h"
#include "app/cli/option_validators.h"
#include "app/cli/parameter_table.h"
#include "app/cli/table_format_option.h"
#include "engine/tasks/api/task.h"

namespace kvscope::cli::tasks_file {
namespace {

analysis::Table list_of_tasks() {
    analysis::Table table{
        "tasks", "Tasks", {{"task", "Task", ""}, {"title", "Title", ""}, {"citation", "Citation", ""}}, {}};
    for (const auto& task : engine::tasks()) table.rows.push_back({{task.name, task.title, task.citation}});
    return table;
}

std::function<int()> declare(CLI::App& app) {
    const auto name = std::make_shared<std::string>();
    const auto format = std::make_shared<OutputFormat>();
    suggest(app.add_option("task", *name, "Task to describe, with its options (default: list all tasks)"),
            defined_names(engine::tasks()));
    format->declare(app);
    return [name, format] {
        if (name->empty()) {
            format->print(list_of_tasks());
            return 0;
        }
        const auto& task = engine::task_named(*name);
        if (format->is_text()) print(task.title + "\n" + task.citation + "\n\n");
        format->print(parameter_table(task.name, task.title, task.parameters));
        return 0;
    };
}

}  // namespace
}  // namespace kvscope::cli::tasks_file

namespace kvscope::cli {

Command tasks_command() {
    using namespace tasks_file;
    return {"tasks", "List the benchmark tasks, or the options of one task",
            "  kvscope tasks\n  kvscope tasks niah\n  kvscope tasks --format json", declare};
}

}  // namespace kvscope::cli
