#include "app/cli/engine/shard_option.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string_view>

namespace kvscope::cli {
namespace {

std::optional<int> whole_number(std::string_view text) {
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value < 0) return std::nullopt;
    return value;
}

int slurm_variable(const char* name) {
    const char* text = std::getenv(name);
    if (!text)
        throw std::invalid_argument(
            fmt::format("--shard auto: {} is not set, so this is no task of a Slurm job array. "
                        "Name the shard, as in --shard 2/4",
                        name));
    if (const auto value = whole_number(text)) return *value;
    throw std::invalid_argument(fmt::format("--shard auto: expected a number in {}, found \"{}\"", name, text));
}

trace::Shard shard_of_slurm_task() {
    const int task = slurm_variable("SLURM_ARRAY_TASK_ID"), count = slurm_variable("SLURM_ARRAY_TASK_COUNT");
    const int first = slurm_variable("SLURM_ARRAY_TASK_MIN"), last = slurm_variable("SLURM_ARRAY_TASK_MAX");
    if (last - first + 1 != count)
        throw std::invalid_argument(
            fmt::format("--shard auto: the job array has {} tasks from {} to {}. Number the tasks without steps and "
                        "gaps, as in --array=1-{}, or name the shard, as in --shard 2/{}",
                        count, first, last, count, count));
    if (task < first || task > last)
        throw std::invalid_argument(fmt::format(
            "--shard auto: SLURM_ARRAY_TASK_ID is {}, but the job array has tasks from {} to {}", task, first, last));
    return {task - first + 1, count};
}

trace::Shard parse_shard(const std::string& text) {
    const size_t slash = text.find('/');
    const auto number = whole_number(std::string_view(text).substr(0, slash));
    const auto of = slash == std::string::npos ? std::nullopt : whole_number(std::string_view(text).substr(slash + 1));
    if (!number || !of)
        throw std::invalid_argument(
            fmt::format("--shard {}: expected I/N, such as 2/4, or auto in a Slurm job array", text));
    if (*of < 1 || *of > trace::most_shards)
        throw std::invalid_argument(
            fmt::format("--shard {}: expected 1 to {} shards, found {}", text, trace::most_shards, *of));
    if (*number < 1 || *number > *of)
        throw std::invalid_argument(
            fmt::format("--shard {}: expected a shard from 1 to {}, found {}", text, *of, *number));
    return {*number, *of};
}

}  // namespace

void declare_shard_option(CLI::App& app, std::string& shard, const std::string& parts) {
    app.add_option("--shard", shard,
                   "Run only part I of N of the " + parts +
                       " and write TRACE.shard-I-of-N.h5; kvscope join joins the parts. auto: the task of a Slurm job "
                       "array")
        ->type_name("I/N|auto");
}

trace::Shard shard_from_text(const std::string& text) {
    return text == "auto" ? shard_of_slurm_task() : parse_shard(text);
}

void set_shard(program::RunJob& job, const std::string& shard) {
    if (shard.empty()) return;
    job.shard = shard_from_text(shard);
    job.output = trace::file_of_shard(job.output, *job.shard);
}

}  // namespace kvscope::cli
