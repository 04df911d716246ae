#include "engine/checkpoint/chat_template_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "common/stopped.h"
#include "engine/template/limits_of_process.h"

namespace kvscope::checkpoint {
namespace {

namespace fs = std::filesystem;
using namespace chat_template;

constexpr const char* program_name = "kvscope-chat-template";
constexpr int milliseconds_between_checks = 100;

fs::path find_program() {
    std::error_code error;
    const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
    for (const fs::path& place : {folder, folder / KVSCOPE_TO_OWN_PROGRAMS}) {
        if (fs::exists(place / program_name, error)) return place / program_name;
    }
    throw std::runtime_error(
        fmt::format("a part of kvscope, {}, is missing: looked in {} and {}. Install kvscope again.", program_name,
                    folder.string(), (folder / KVSCOPE_TO_OWN_PROGRAMS).lexically_normal().string()));
}

[[noreturn]] void fail(const char* doing) {
    throw std::runtime_error(fmt::format("{} failed: {}", doing, std::strerror(errno)));
}

class Descriptor {
 public:
    explicit Descriptor(int number) : number_(number) {}
    ~Descriptor() { close(); }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int get() const { return number_; }
    void close() {
        if (number_ >= 0) ::close(std::exchange(number_, -1));
    }

 private:
    int number_;
};

class Process {
 public:
    Process(const fs::path& program, int socket) {
        posix_spawn_file_actions_t files;
        posix_spawnattr_t attributes;
        if (posix_spawn_file_actions_init(&files) != 0 || posix_spawnattr_init(&attributes) != 0)
            throw std::bad_alloc();
        posix_spawn_file_actions_adddup2(&files, socket, STDIN_FILENO);
        posix_spawn_file_actions_adddup2(&files, socket, STDOUT_FILENO);
        posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
        // A separate process group leaves Ctrl-C to the parent process.
        sigset_t none, all;
        sigemptyset(&none);
        sigfillset(&all);
        posix_spawnattr_setsigmask(&attributes, &none);
        posix_spawnattr_setsigdefault(&attributes, &all);
        posix_spawnattr_setpgroup(&attributes, 0);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
        std::string name = program.string();
        std::array<char*, 2> arguments{name.data(), nullptr};
        const int error = posix_spawn(&number_, name.c_str(), &files, &attributes, arguments.data(), environ);
        posix_spawn_file_actions_destroy(&files);
        posix_spawnattr_destroy(&attributes);
        if (error != 0) {
            number_ = -1;
            throw std::runtime_error(fmt::format("{} cannot be started: {}", name, std::strerror(error)));
        }
    }
    ~Process() {
        if (number_ < 0) return;
        ::kill(number_, SIGKILL);
        wait();
    }
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;

    int wait() {
        int status = 0;
        while (::waitpid(number_, &status, 0) < 0 && errno == EINTR) {
        }
        number_ = -1;
        return status;
    }

 private:
    pid_t number_ = -1;
};

[[noreturn]] void took_too_long(int seconds) {
    throw TemplateLimit(fmt::format("it takes longer than the limit of {} s", seconds));
}

/// Sends `request` and returns all data received until the program closes its end.
std::string exchange(int socket, std::string_view request, const std::stop_token& stop) {
    constexpr size_t most = size_t{megabytes_of_text} << 20;
    const auto start = std::chrono::steady_clock::now();
    std::string received;
    std::array<char, 1 << 16> block{};
    for (;;) {
        pollfd waited{socket, static_cast<short>(request.empty() ? POLLIN : POLLIN | POLLOUT), 0};
        if (::poll(&waited, 1, milliseconds_between_checks) < 0 && errno != EINTR) fail("waiting for a chat template");
        throw_if_stopped(stop);
        if (std::chrono::steady_clock::now() - start > std::chrono::seconds(seconds_in_all))
            took_too_long(seconds_in_all);
        if ((waited.revents & POLLOUT) != 0) {
            const ssize_t sent = ::send(socket, request.data(), request.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
            // If the program has already ended, its output gives the reason.
            request.remove_prefix(sent > 0 ? static_cast<size_t>(sent) : errno == EPIPE ? request.size() : 0);
            if (request.empty()) ::shutdown(socket, SHUT_WR);
        }
        if ((waited.revents & (POLLIN | POLLHUP | POLLERR)) == 0) continue;
        const ssize_t got = ::recv(socket, block.data(), block.size(), MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno == ECONNRESET)) return received;
        if (got < 0 && errno != EAGAIN && errno != EINTR) fail("reading the rendered chat template");
        if (got > 0) received.append(block.data(), static_cast<size_t>(got));
        if (received.size() > most)
            throw TemplateLimit(fmt::format("it produces more than {} MB of text", megabytes_of_text));
    }
}

[[noreturn]] void explain(int status) {
    if (WIFSIGNALED(status)) {
        const int signal = WTERMSIG(status);
        if (signal == SIGXCPU) took_too_long(seconds_of_processor);
        if (signal == SIGSEGV || signal == SIGBUS)
            throw TemplateLimit(fmt::format("its nesting exceeds {} MB of stack, as for a list that contains itself",
                                            megabytes_of_stack));
        throw std::runtime_error(fmt::format("{} was ended by {}", program_name, ::strsignal(signal)));
    }
    if (WEXITSTATUS(status) == exit_out_of_memory)
        throw TemplateLimit(
            fmt::format("it needs more than {} MB of memory, the limit for chat templates", megabytes_of_memory));
    throw std::runtime_error(fmt::format("{} ended with exit code {}", program_name, WEXITSTATUS(status)));
}

}  // namespace

Reply ask_template_process(const Request& request, const std::stop_token& stop) {
    static const fs::path program = find_program();
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) fail("starting a chat template");
    const Descriptor ours(ends[0]);
    Descriptor its(ends[1]);
    Process process(program, its.get());
    its.close();
    const std::string answer = exchange(ours.get(), message_to_bytes(request), stop);
    const int status = process.wait();
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        if (auto reply = parse_reply(answer)) return *std::move(reply);
    }
    explain(status);
}

}  // namespace kvscope::checkpoint
