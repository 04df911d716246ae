#pragma once

#include <functional>
#include <thread>

namespace kvscope::gui {

/// Calls a function on its own thread at the first SIGTERM, SIGINT or SIGHUP. A second signal ends the program. Only
/// one instance may exist.
class EndSignal {
 public:
    /// @throws std::system_error if no pipe can be created
    explicit EndSignal(std::function<void()> asked);
    ~EndSignal();
    [[nodiscard]] int signal() const;
    EndSignal(const EndSignal&) = delete;
    EndSignal& operator=(const EndSignal&) = delete;

 private:
    std::thread thread_;
};

}  // namespace kvscope::gui
