#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "app/cli/stop_signal.h"
#include "engine/checkpoint/stop_check.h"
#include "engine/progress.h"

namespace kvscope::cli {

/// Progress on standard error: one line that is rewritten on a terminal, plain lines else; with time left, in tqdm's
/// form. Ctrl-C and SIGTERM cancel at the next safe place, as
/// stop_signal.h has it.
class TerminalProgress final : public engine::Progress {
 public:
    explicit TerminalProgress(bool quiet);
    ~TerminalProgress() override;
    TerminalProgress(const TerminalProgress&) = delete;
    TerminalProgress& operator=(const TerminalProgress&) = delete;

    void begin(std::string_view phase, int64_t steps) override;
    void advance(int64_t done) override;
    void message(std::string_view text) override;
    void warning(std::string_view text) override;
    bool cancelled() const override;

 private:
    void clear_line();

    StopSignals signals_;
    checkpoint::StopCheck stop_check_;  // reaches a model's template and tokenizer, which know no progress
    bool quiet_;
    bool terminal_;
    bool line_open_ = false;
    std::string phase_;
    int64_t steps_ = 0;
    std::chrono::steady_clock::time_point start_;
    std::chrono::steady_clock::time_point shown_;
};

}  // namespace kvscope::cli
