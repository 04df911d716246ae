#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/tasks/api/task.h"

namespace kvscope::cli {

/// A text, and the tasks that have it.
struct TextOfTasks {
    explicit TextOfTasks(std::string its_text) : text(std::move(its_text)) {}
    std::string text;
    std::vector<std::string> tasks{};
};

/// Command-line options of benchmark tasks. Several tasks may declare the same option.
class TaskFlags {
 public:
    void declare(CLI::App& app, std::span<const engine::Task> tasks);

    /// Returns `defaults`, overridden by the values that the user set for this task. For a `parse_complete_callback`.
    /// @throws CLI::ValidationError for values out of range; std::invalid_argument for options of other tasks
    [[nodiscard]] policies::ParameterValues read(const engine::Task& task, policies::ParameterValues defaults) const;
    /// Hides the options of other tasks in the help, and the values of other tasks in the descriptions.
    void describe_only(const engine::Task& task);
    [[nodiscard]] int64_t n_new(const engine::Task& task) const { return n_new_ > 0 ? n_new_ : task.n_new; }

 private:
    struct Flag {
        CLI::Option* option = nullptr;
        std::string text;
        std::vector<std::string> list;       ///< instead of `text` for lists
        std::vector<std::string> choices{};  ///< of all tasks; read() refuses those of other tasks
        std::vector<TextOfTasks> helps{}, defaults{};
    };
    std::map<std::string, Flag> flags_;
    CLI::Option* n_new_option_ = nullptr;
    int64_t n_new_ = 0;  ///< 0 for the task's default
};

}  // namespace kvscope::cli
