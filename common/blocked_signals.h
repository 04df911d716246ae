#pragma once

#include <csignal>
#include <initializer_list>

namespace kvscope {

/// Blocks signals in this thread during its lifetime. Blocked SIGXFSZ makes a write past the file size limit fail as on
/// a full disk. The destructor discards a pending SIGXFSZ, then unblocks the signals. Keeps errno.
class BlockedSignals {
 public:
    explicit BlockedSignals(std::initializer_list<int> signals);
    ~BlockedSignals();
    BlockedSignals(const BlockedSignals&) = delete;
    BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
    sigset_t before_{};
};

}  // namespace kvscope
