#include "app/cli/sweep/sweep_slurm.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <utility>

#include "app/cli/sweep/child_processes.h"
#include "common/file_text.h"
#include "common/json.h"
#include "common/split.h"
#include "common/whole_file.h"

namespace kvscope::cli {
namespace {

constexpr int usual_array_size = 8;

/// Quotes a text as one word of a shell command.
std::string shell_word(const std::string& text) {
    std::string quoted = "'";
    for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return quoted + "'";
}

/// Runs a program and returns its output. @throws std::runtime_error with its messages if it fails
std::string output_of(const std::vector<std::string>& command) {
    std::string line;
    for (const std::string& word : command) line += shell_word(word) + " ";
    std::FILE* pipe = ::popen((line + "2>&1").c_str(), "re");
    if (pipe == nullptr)
        throw std::runtime_error(fmt::format("{} cannot be started: {}", command.front(), std::strerror(errno)));
    std::string output;
    std::array<char, 4096> block{};
    for (size_t n = 0; (n = std::fread(block.data(), 1, block.size(), pipe)) > 0;) output.append(block.data(), n);
    const int status = ::pclose(pipe);
    while (output.ends_with('\n')) output.pop_back();
    if (status == 0) return output;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        throw std::runtime_error(
            fmt::format("{0} was not found: use a machine on which Slurm is installed, or submit the script that "
                        "--print-sbatch prints",
                        command.front()));
    throw std::runtime_error(fmt::format("{} failed: {}", command.front(), output));
}

std::string submitted_job(const std::vector<std::string>& command) {
    const std::string output = output_of(command);
    return output.substr(0, output.find(';'));  // "12;cluster"
}

bool is_waiting_in_slurm(const std::string& state) {
    static const std::set<std::string, std::less<>> states = {
        "PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD"};
    return states.contains(state);
}

bool is_running_in_slurm(const std::string& state) {
    static const std::set<std::string, std::less<>> states = {"RUNNING",   "COMPLETING", "STAGE_OUT", "SIGNALING",
                                                              "SUSPENDED", "STOPPED",    "RESIZING"};
    return states.contains(state);
}

/// Percent signs stand for job numbers in the names of logs.
std::string log_pattern(std::string path) {
    for (size_t at = 0; (at = path.find('%', at)) != std::string::npos; at += 2) path.insert(at, 1, '%');
    return path;
}

}  // namespace

SlurmSweep::SlurmSweep(const SweepFolder& folder, std::span<const SweepTrace> traces, SlurmOptions options)
    : folder_(folder), traces_(traces), options_(std::move(options)) {
    try {
        const auto json = nlohmann::json::parse(file_text(folder.logs() / "slurm.json"));
        json.at("shards").get_to(n_shards_);
        json.at("arrays").get_to(arrays_);
        json.at("joins").get_to(joins_);
    } catch (const std::exception&) {
        n_shards_ = 0;  // nothing was submitted
    }
    if (n_shards_ > 0 && options_.array_size.value_or(n_shards_) != n_shards_)
        throw std::invalid_argument(fmt::format(
            "--array-size {}: the traces in {} were begun with {} shards. Use --array-size {}, or another folder",
            *options_.array_size, folder.path().string(), n_shards_, n_shards_));
    if (n_shards_ == 0) n_shards_ = options_.array_size.value_or(usual_array_size);
}

std::string SlurmSweep::directives(const std::string& name, const std::string& log) const {
    const std::filesystem::path logs = std::filesystem::absolute(folder_.logs());
    std::string text =
        fmt::format("#SBATCH --job-name={}\n#SBATCH --output=\"{}\"\n#SBATCH --open-mode=append\n#SBATCH --requeue\n",
                    name, log_pattern(logs.string()) + "/" + log);
    if (!options_.partition.empty()) text += fmt::format("#SBATCH --partition={}\n", options_.partition);
    if (!options_.time.empty()) text += fmt::format("#SBATCH --time={}\n", options_.time);
    for (const std::string& other : options_.others) text += fmt::format("#SBATCH {}\n", other);
    return text;
}

std::string SlurmSweep::script() const {
    std::string text = "#!/bin/bash\n" + directives("kvscope-sweep", "slurm-%a.log") +
                       fmt::format("#SBATCH --array=1-{}\n", n_shards_);
    if (!options_.gres.empty()) text += fmt::format("#SBATCH --gres={}\n", options_.gres);
    return text + fmt::format(
                      "export OMP_NUM_THREADS=\"${{OMP_NUM_THREADS:-$SLURM_CPUS_ON_NODE}}\"\n"
                      "exec {} sweep {} --shard \"$SLURM_ARRAY_TASK_ID/{}\"\n",
                      shell_word(own_program().string()),
                      shell_word(std::filesystem::absolute(folder_.path()).string()), n_shards_);
}

std::string SlurmSweep::join_script() const {
    return "#!/bin/bash\n" + directives("kvscope-join", "slurm-join.log") +
           fmt::format("exec {} sweep {} --join {}\n", shell_word(own_program().string()),
                       shell_word(std::filesystem::absolute(folder_.path()).string()), n_shards_);
}

SlurmSweep::Queue SlurmSweep::query_tasks() const {
    Queue queue;
    auto& tasks = queue.tasks;
    tasks.resize(static_cast<size_t>(n_shards_) + 1);
    for (const std::string& array : arrays_) {  // later jobs replace earlier ones
        std::string lines;
        try {
            lines =
                output_of({"squeue", "--noheader", "--array", "--states=all", "--format=%K|%T|%r", "--jobs=" + array});
        } catch (const std::runtime_error&) {
            continue;  // Slurm forgets ended jobs
        }
        if (!lines.empty()) queue.arrays.push_back(array);
        for (const std::string_view line : split(lines, '\n')) {
            const auto fields = split(line, '|');
            size_t number = 0;
            if (fields.size() != 3) continue;
            std::from_chars(fields[0].data(), fields[0].data() + fields[0].size(), number);
            if (number > 0 && number < tasks.size()) tasks[number] = {std::string(fields[1]), std::string(fields[2])};
        }
    }
    return queue;
}

SlurmSweep::ShardState SlurmSweep::state_of(const SweepPart& part, std::span<const std::string> task) const {
    if (folder_.is_finished(part)) return {"finished", folder_.last_attempt(part).value_or(SweepAttempt{}).reason};
    if (!task.empty() && is_waiting_in_slurm(task[0])) return {"waiting", task[1] == "None" ? "" : task[1]};
    if (!task.empty() && is_running_in_slurm(task[0])) return {"running", ""};
    const auto attempt = folder_.last_attempt(part);
    if (attempt && attempt->exit_code && !attempt->is_complete) return {"failed", attempt->reason};
    if (!task.empty() && task[0] != "COMPLETED") return {"failed", "Slurm reports " + task[0]};
    if (attempt && !attempt->exit_code) return {"failed", "killed; see " + folder_.log(part).string()};
    return {"not submitted", ""};
}

void SlurmSweep::write_jobs() const {
    const nlohmann::ordered_json json = {{"shards", n_shards_}, {"arrays", arrays_}, {"joins", joins_}};
    write_whole_file(folder_.logs() / "slurm.json", json.dump(2) + "\n", true);
}

std::vector<std::string> SlurmSweep::submit() {
    std::vector<std::string> lines;
    std::vector<int> submitted;
    bool is_active = false, is_joined = true;
    auto [tasks, known] = query_tasks();
    for (const SweepTrace& trace : traces_) is_joined = is_joined && folder_.is_finished({&trace});
    if (is_joined) return {"all traces are finished: nothing to submit"};
    for (int number = 1; number <= n_shards_; ++number) {
        bool is_needed = false, is_queued = false;
        for (const SweepTrace& trace : traces_) {
            if (folder_.is_finished({&trace})) continue;
            const SweepPart part{&trace, trace::Shard{number, n_shards_}};
            const ShardState state = state_of(part, tasks[static_cast<size_t>(number)]);
            if (state.state == "failed") lines.push_back(fmt::format("{} failed: {}", part.name(), state.reason));
            is_queued = is_queued || state.state == "running" || state.state == "waiting";
            is_needed = is_needed || state.state != "finished";
        }
        is_active = is_active || is_queued;
        if (is_needed && !is_queued) submitted.push_back(number);
    }
    const auto write_script = [&](const char* name, const std::string& text) {
        write_whole_file(folder_.logs() / name, text, true);
        return (folder_.logs() / name).string();
    };
    if (!submitted.empty()) {
        arrays_.push_back(submitted_job({"sbatch", "--parsable", fmt::format("--array={}", fmt::join(submitted, ",")),
                                         write_script("shards.sbatch", script())}));
        known.push_back(arrays_.back());
        write_jobs();
        lines.push_back(fmt::format("job {}: {} of {} shards submitted", arrays_.back(), submitted.size(), n_shards_));
    }
    if (is_active && submitted.empty()) {
        lines.emplace_back("Slurm runs the unfinished shards, or has them in its queue: nothing to submit");
        return lines;
    }
    std::vector<std::string> command = {"sbatch", "--parsable"};
    if (!known.empty()) command.push_back(fmt::format("--dependency=afterany:{}", fmt::join(known, ":")));
    command.push_back(write_script("join.sbatch", join_script()));
    joins_.push_back(submitted_job(command));
    write_jobs();
    lines.push_back(fmt::format("job {}: joins the shards when they have ended", joins_.back()));
    return lines;
}

bool SlurmSweep::has_attempts() const {
    for (const SweepTrace& trace : traces_)
        for (int number = 1; number <= n_shards_; ++number)
            if (folder_.last_attempt({&trace, trace::Shard{number, n_shards_}})) return true;
    return false;
}

analysis::Table SlurmSweep::status() const {
    analysis::Table table{
        "sweep",
        "Sweep",
        {{"trace", "Trace", ""}, {"shard", "Shard", ""}, {"state", "State", ""}, {"reason", "Reason", ""}},
        {}};
    if (arrays_.empty() && !has_attempts()) {
        table.note = "The sweep was not submitted to Slurm.";
        for (const SweepTrace& trace : traces_) {
            const auto attempt = folder_.last_attempt({&trace});
            const char* const state = folder_.is_finished({&trace})                            ? "finished"
                                      : attempt && attempt->exit_code && !attempt->is_complete ? "failed"
                                      : folder_.begun_shards(trace)                            ? "unfinished"
                                                                                               : "not begun";
            table.rows.push_back({{trace.name, "all", state, attempt ? attempt->reason : ""}});
        }
        return table;
    }
    const auto tasks = query_tasks().tasks;
    for (const SweepTrace& trace : traces_) {
        const bool is_joined = folder_.is_finished({&trace});
        for (int number = 1; number <= n_shards_ && !is_joined; ++number) {
            const ShardState state =
                state_of({&trace, trace::Shard{number, n_shards_}}, tasks[static_cast<size_t>(number)]);
            table.rows.push_back({{trace.name, fmt::format("{}/{}", number, n_shards_), state.state, state.reason}});
        }
        const auto attempt = folder_.last_attempt({&trace});
        const bool is_failed = !is_joined && attempt && attempt->exit_code && !attempt->is_complete;
        table.rows.push_back({{trace.name, "all",
                               is_joined   ? "joined"
                               : is_failed ? "failed"
                                           : "not joined",
                               is_joined || is_failed ? attempt->reason : ""}});
    }
    return table;
}

std::string SlurmSweep::cancel() const {
    std::vector<std::string> jobs = arrays_;
    jobs.insert(jobs.end(), joins_.begin(), joins_.end());
    if (jobs.empty()) return "no job was submitted: nothing to cancel";
    std::vector<std::string> command = {"scancel"};
    command.insert(command.end(), jobs.begin(), jobs.end());
    (void)output_of(command);
    return fmt::format("cancelled: {}. Finished runs are kept, and the same command with --slurm continues",
                       fmt::join(jobs, ", "));
}

}  // namespace kvscope::cli
