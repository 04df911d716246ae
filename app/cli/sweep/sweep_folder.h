#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "app/cli/sweep/sweep_traces.h"
#include "trace/shard.h"

namespace kvscope::cli {

/// Creates a folder, and those above it. @throws FileNotWritten with the advice to choose another folder with -o
void create_output_folder(const std::filesystem::path& folder);

/// A process of a sweep: a whole trace, or one shard of it.
struct SweepPart {
    const SweepTrace* trace = nullptr;
    std::optional<trace::Shard> shard{};

    /// Returns "model-niah-seed-0" or "model-niah-seed-0.shard-2-of-4".
    [[nodiscard]] std::string name() const;
};

/// The last attempt to run a part.
struct SweepAttempt {
    std::vector<std::string> arguments;    ///< of the part's trace
    std::vector<std::string> environment;  ///< variables that the sweep set, such as "OMP_NUM_THREADS=2"
    std::optional<int> exit_code;          ///< unset if the attempt has not ended, or was killed with its sweep
    std::string reason;                    ///< why it failed, or a remark on failed runs of a complete trace
    double seconds = 0;
    bool is_complete = false;  ///< whether all runs have ended; some may have failed, with exit code 1
};

/// The folder of a sweep: traces, shards/ (traces of shards), logs/ (output and last attempt of each part), and
/// effective.yaml (the settings).
class SweepFolder {
 public:
    explicit SweepFolder(std::filesystem::path path) : path_(std::move(path)) {}

    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    [[nodiscard]] std::filesystem::path settings() const { return path_ / "effective.yaml"; }
    [[nodiscard]] std::filesystem::path logs() const { return path_ / "logs"; }
    [[nodiscard]] std::filesystem::path log(const SweepPart& part) const { return logs() / (part.name() + ".log"); }
    /// Returns the file of the option --outcome of the part's command.
    [[nodiscard]] std::filesystem::path outcome(const SweepPart& part) const {
        return logs() / (part.name() + ".outcome.json");
    }
    [[nodiscard]] std::filesystem::path trace_file(const SweepTrace& trace) const;
    /// Returns the option -o of the part's command, which adds the shard to the name.
    [[nodiscard]] std::filesystem::path output(const SweepPart& part) const;
    /// Returns the existing traces of a trace's shards.
    [[nodiscard]] std::vector<std::filesystem::path> shard_files(const SweepTrace& trace, int of) const;
    /// Returns into how many shards a begun trace is divided, 1 for a trace without shards; nullopt if it is not begun.
    [[nodiscard]] std::optional<int> begun_shards(const SweepTrace& trace) const;

    /// @throws FileNotWritten
    void create() const;
    [[nodiscard]] std::optional<SweepAttempt> last_attempt(const SweepPart& part) const;
    void write_attempt(const SweepPart& part, const SweepAttempt& attempt) const;
    /// Whether all runs of the part have ended with the same settings, and no file that these name has changed since.
    [[nodiscard]] bool is_finished(const SweepPart& part) const;

 private:
    [[nodiscard]] std::filesystem::path attempt_file(const SweepPart& part) const;

    std::filesystem::path path_;
};

}  // namespace kvscope::cli
