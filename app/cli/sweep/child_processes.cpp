#include "app/cli/sweep/child_processes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "common/stopped.h"

namespace kvscope::cli {
namespace {

constexpr int milliseconds_between_stop_checks = 100;
constexpr std::string_view failure_prefix = "kvscope: ";

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    for (std::string& text : texts) pointers.push_back(text.data());
    pointers.push_back(nullptr);
    return pointers;
}

std::vector<std::string> with_own_environment(const std::vector<std::string>& added) {
    std::vector<std::string> all = added;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string_view name = std::string_view(*entry).substr(0, std::string_view(*entry).find('='));
        const bool is_replaced = std::ranges::any_of(added, [&](const std::string& one) {
            return one.size() > name.size() && one.starts_with(name) && one[name.size()] == '=';
        });
        if (!is_replaced) all.emplace_back(*entry);
    }
    return all;
}

/// Runs in the child process between fork and exec, where only async-signal-safe functions may be called.
[[noreturn]] void become(const char* program, char** arguments, char** environment, int output, int errors,
                         pid_t parent) {
    ::setpgid(0, 0);  // Ctrl-C reaches only the parent, which stops its children
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(128 + SIGTERM);
    struct sigaction action {};
    action.sa_handler = SIG_DFL;
    for (int signal = 1; signal < NSIG; ++signal) ::sigaction(signal, &action, nullptr);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    const int input = ::open("/dev/null", O_RDONLY);
    ::dup2(input, STDIN_FILENO);
    ::dup2(output, STDOUT_FILENO);
    ::dup2(errors, STDERR_FILENO);
    ::execve(program, arguments, environment);
    ::_exit(127);
}

}  // namespace

std::filesystem::path own_program() { return std::filesystem::read_symlink("/proc/self/exe"); }

void ChildProcesses::start(size_t number, const std::vector<std::string>& arguments,
                           const std::vector<std::string>& environment, const std::filesystem::path& log) {
    const std::string program = own_program().string();
    std::vector<std::string> words = {"kvscope"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<std::string> variables = with_own_environment(environment);
    const auto word_pointers = pointers_to(words), variable_pointers = pointers_to(variables);
    Child child{.number = number};
    child.log = ::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
    if (child.log < 0) throw std::runtime_error(fmt::format("{}: {}", log.string(), std::strerror(errno)));
    std::array<int, 2> pipe{-1, -1};
    if (::pipe2(pipe.data(), O_CLOEXEC) != 0) {
        ::close(child.log);
        throw std::runtime_error(fmt::format("a pipe cannot be made: {}", std::strerror(errno)));
    }
    child.errors = pipe[0];
    const pid_t parent = ::getpid(), process = ::fork();
    if (process == 0)
        become(program.c_str(), const_cast<char**>(word_pointers.data()),  // NOLINT(*-const-cast): as exec needs
               const_cast<char**>(variable_pointers.data()), child.log, pipe[1], parent);  // NOLINT(*-const-cast)
    const int error = errno;
    ::close(pipe[1]);
    if (process < 0) {
        ::close(pipe[0]);
        ::close(child.log);
        throw std::runtime_error(fmt::format("a process cannot be started: {}", std::strerror(error)));
    }
    ::fcntl(child.errors, F_SETFL, O_NONBLOCK);
    children_.emplace(process, std::move(child));
}

/// Returns false if the process has closed its standard error.
bool ChildProcesses::read_lines(Child& child) {
    std::array<char, 1 << 14> block{};
    for (;;) {
        const ssize_t got = ::read(child.errors, block.data(), block.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno == EAGAIN) return true;
        if (got <= 0) return false;
        const std::string_view text(block.data(), static_cast<size_t>(got));
        [[maybe_unused]] const ssize_t written = ::write(child.log, text.data(), text.size());
        child.unfinished += text;
        for (size_t end = 0; (end = child.unfinished.find('\n')) != std::string::npos;) {
            const std::string line = child.unfinished.substr(0, end);
            child.unfinished.erase(0, end + 1);
            if (line.empty()) continue;
            child.last_line = line;
            if (child.first_line.empty()) child.first_line = line;
            if (line.starts_with(failure_prefix))
                child.failure = line.substr(failure_prefix.size());
            else if (!child.failure.empty())
                child.failure += " " + line.substr(std::min(line.find_first_not_of(' '), line.size()));
            if (on_line_) on_line_(child.number, line);
        }
    }
}

ChildEnd ChildProcesses::reap(pid_t process) {
    int status = 0;
    while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
    }
    auto child = children_.extract(process);
    ::close(child.mapped().errors);
    ::close(child.mapped().log);
    ChildEnd end{child.mapped().number, WEXITSTATUS(status), ""};
    if (WIFSIGNALED(status)) {
        const int signal = WTERMSIG(status);
        end.exit_code = 128 + signal;
        end.reason = fmt::format("ended by signal {} ({}){}", signal, ::strsignal(signal),
                                 signal == SIGKILL ? "; perhaps the memory did not suffice" : "");
    } else if (end.exit_code != 0) {
        end.reason = child.mapped().failure;
        // Usage errors begin with the cause and end with a hint.
        if (end.reason.empty()) end.reason = end.exit_code == 2 ? child.mapped().first_line : child.mapped().last_line;
        if (end.reason.empty()) end.reason = fmt::format("exit code {}", end.exit_code);
    }
    return end;
}

ChildEnd ChildProcesses::wait(const std::stop_token& stop) {
    bool is_stopping = false;
    while (!children_.empty()) {
        if (stop.stop_requested() && !is_stopping) {
            for (const auto& [process, child] : children_) ::kill(process, SIGTERM);
            is_stopping = true;
        }
        std::vector<pollfd> waited;
        std::vector<pid_t> processes;
        for (const auto& [process, child] : children_) {
            waited.push_back({child.errors, POLLIN, 0});
            processes.push_back(process);
        }
        if (::poll(waited.data(), waited.size(), milliseconds_between_stop_checks) <= 0) continue;
        for (size_t i = 0; i < waited.size(); ++i) {
            if (waited[i].revents == 0 || read_lines(children_.at(processes[i]))) continue;
            ChildEnd end = reap(processes[i]);
            // A signal to all processes may end a child before this process has seen it.
            if (end.exit_code == 128 + SIGTERM || end.exit_code == 128 + SIGINT)
                ::poll(nullptr, 0, milliseconds_between_stop_checks);
            if (!is_stopping && !stop.stop_requested()) return end;
        }
    }
    throw Stopped();
}

ChildProcesses::~ChildProcesses() {
    for (const auto& [process, child] : children_) ::kill(process, SIGTERM);
    while (!children_.empty()) (void)reap(children_.begin()->first);
}

}  // namespace kvscope::cli
