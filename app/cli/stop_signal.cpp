#include "app/cli/stop_signal.h"

#include <semaphore.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace kvscope::cli {
namespace {

constexpr std::array signals = {SIGINT, SIGTERM};
constexpr int seconds_to_end = 1;

std::atomic<int> noted{0};
sem_t changed{};  ///< posted after a signal, and when StopSignals ends
std::array<char, 4096> last_words{};
std::atomic<std::size_t> n_last_words{0};
std::array<struct sigaction, signals.size()> before{};
struct sigaction alarm_before {};

void set_timer(int seconds) {
    itimerval timer{};
    timer.it_value.tv_sec = seconds;
    setitimer(ITIMER_REAL, &timer, nullptr);
}

void by_default(int signal) {
    struct sigaction action {};
    action.sa_handler = SIG_DFL;
    sigaction(signal, &action, nullptr);
}

// After the first signal, default handling is restored, so that a second signal ends the program.
void on_stop(int signal) {
    int none = 0;
    noted.compare_exchange_strong(none, signal);
    sem_post(&changed);
    for (size_t i = 0; i < signals.size(); ++i)
        if (before[i].sa_handler != SIG_IGN) by_default(signals[i]);
    set_timer(seconds_to_end);
}

void on_time_over(int /*signal*/) {
    [[maybe_unused]] const ssize_t n = write(STDERR_FILENO, last_words.data(), n_last_words);
    kill(getpid(), noted);
}

}  // namespace

StopSignals::StopSignals() {
    set_last_words("stopped");
    sem_init(&changed, 0, 0);
    struct sigaction action {};
    action.sa_flags = SA_RESTART;
    action.sa_handler = on_time_over;
    sigaction(SIGALRM, &action, &alarm_before);
    action.sa_handler = on_stop;
    for (size_t i = 0; i < signals.size(); ++i) {
        sigaction(signals[i], &action, &before[i]);
        if (before[i].sa_handler == SIG_IGN) sigaction(signals[i], &before[i], nullptr);
    }
    thread_ = std::jthread([this](const std::stop_token& ended) {
        while (noted == 0 && !ended.stop_requested()) sem_wait(&changed);
        if (noted != 0) stop_.request_stop();
    });
}

StopSignals::~StopSignals() {
    thread_.request_stop();
    sem_post(&changed);
    // After a signal, the program is about to end, so its timer and signal handlers stay.
    if (noted != 0) return;
    for (size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], &before[i], nullptr);
    sigaction(SIGALRM, &alarm_before, nullptr);
}

void StopSignals::set_last_words(std::string_view words) {
    n_last_words = 0;
    const std::string text = "\nkvscope: " + std::string(words).substr(0, last_words.size() - 16) + "\n";
    n_last_words = text.copy(last_words.data(), last_words.size());
}

void note_stop_signal(int signal) { noted = signal; }

void end_by_noted_signal() {
    if (const int signal = noted) end_by_signal(signal);
}

void end_by_signal(int signal) {
    set_timer(0);
    std::fflush(nullptr);
    by_default(signal);
    sigset_t only{};
    sigemptyset(&only);
    sigaddset(&only, signal);
    sigprocmask(SIG_UNBLOCK, &only, nullptr);
    raise(signal);
    std::_Exit(128 + signal);
}

}  // namespace kvscope::cli
