#pragma once

#include <functional>
#include <thread>

namespace kvscope::gui {

/// While it lives, the first SIGTERM, SIGINT or SIGHUP calls a function, on a thread of its own; a second ends the
/// program. One at a time.
class EndSignal {
 public:
    /// @throws std::system_error
    explicit EndSignal(std::function<void()> asked);
    ~EndSignal();
    /// The one that came; 0 where none has.
    int signal() const;
    EndSignal(const EndSignal&) = delete;
    EndSignal& operator=(const EndSignal&) = delete;

 private:
    std::thread thread_;
};

}  // namespace kvscope::gui
