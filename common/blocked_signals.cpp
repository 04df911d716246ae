#include "common/blocked_signals.h"

#include <cerrno>
#include <ctime>

namespace kvscope {

BlockedSignals::BlockedSignals(std::initializer_list<int> signals) {
    sigset_t blocked{};
    sigemptyset(&blocked);
    for (const int signal : signals) sigaddset(&blocked, signal);
    pthread_sigmask(SIG_BLOCK, &blocked, &before_);
}

BlockedSignals::~BlockedSignals() {
    const int error = errno;
    sigset_t size_limit{};
    sigemptyset(&size_limit);
    sigaddset(&size_limit, SIGXFSZ);
    const timespec now{};
    while (sigismember(&before_, SIGXFSZ) == 0 && sigtimedwait(&size_limit, nullptr, &now) == SIGXFSZ) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
}

}  // namespace kvscope
