#pragma once

#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope::cli {

/// How a process ended.
struct ChildEnd {
    size_t number = 0;   ///< given to start()
    int exit_code = 0;   ///< 128 + signal for a killed process
    std::string reason;  ///< why it failed: its message, or the signal; empty for exit code 0
};

/// Processes of this program. They end with this process. Standard output goes to a log, standard error also to a
/// callback.
class ChildProcesses {
 public:
    using OnLine = std::function<void(size_t number, std::string_view line)>;
    explicit ChildProcesses(OnLine on_line) : on_line_(std::move(on_line)) {}
    ~ChildProcesses();
    ChildProcesses(const ChildProcesses&) = delete;
    ChildProcesses& operator=(const ChildProcesses&) = delete;

    /// @param environment "NAME=value", in addition to this process's environment
    /// @param log file for the output, which is replaced
    /// @throws std::runtime_error if the process cannot be started
    void start(size_t number, const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
               const std::filesystem::path& log);
    [[nodiscard]] size_t n_running() const { return children_.size(); }
    /// Waits until one of the running processes ends. After a stop request, ends all. @throws Stopped when all have
    /// ended
    [[nodiscard]] ChildEnd wait(const std::stop_token& stop);

 private:
    struct Child {
        size_t number = 0;
        int errors = -1;  ///< pipe from standard error
        int log = -1;
        std::string unfinished{};  ///< line without its end
        std::string first_line{};
        std::string last_line{};
        std::string failure{};  ///< from the last line that begins with "kvscope: " on, as one line
    };

    [[nodiscard]] bool read_lines(Child& child);
    [[nodiscard]] ChildEnd reap(pid_t process);

    OnLine on_line_;
    std::map<pid_t, Child> children_;
};

/// Returns the path of this program.
[[nodiscard]] std::filesystem::path own_program();

}  // namespace kvscope::cli
