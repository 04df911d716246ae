#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "app/cli/sweep/sweep_traces.h"
#include "app/papers/paper.h"

namespace kvscope::cli {

/// Settings of `kvscope reproduce` that replace those of a paper.
struct PaperSettings {
    std::filesystem::path model{};  ///< empty: the default model
    std::string device{};           ///< empty: the processor
    std::filesystem::path text{};   ///< a file, or a folder of prompts; empty: the installed English prose
    std::filesystem::path data{};   ///< folder with the data of benchmarks; empty: none
    int same_window = 0;            ///< 0: each policy has its own
    bool is_fast = false;
};

/// Reports a trace whose data the user has not provided.
struct MissingData : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// The commands that make a paper's traces in a folder. The folder contains the traces, texts/ (prompts), prepared/
/// (outputs of Paper::preparations), figures/ and index.html.
class PaperCommands {
 public:
    PaperCommands(const papers::Paper& paper, PaperSettings settings, std::filesystem::path folder);

    /// Writes the prompts that the traces need. Does not change existing files with the same text.
    /// @throws std::runtime_error for unreadable texts, or if there are too few; FileNotWritten
    void write_texts() const;
    /// Returns the arguments of a preparation without its output. @throws MissingData
    [[nodiscard]] std::vector<std::string> preparation(const papers::Preparation& preparation) const;
    /// Returns the names of the preparations that the trace reads.
    [[nodiscard]] std::vector<const papers::Preparation*> preparations_of(const papers::PaperTrace& trace) const;
    /// Returns the command that makes the trace, without the output. @throws MissingData
    [[nodiscard]] SweepTrace trace(const papers::PaperTrace& trace) const;
    /// Returns the arguments of an item that is drawn by a command, without the output. @throws MissingData
    [[nodiscard]] std::vector<std::string> item(const papers::PaperItem& item) const;

    [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }

 private:
    [[nodiscard]] std::string filled(std::string value) const;
    void append(std::vector<std::string>& arguments, const papers::OptionTexts& options) const;
    void append_model(std::vector<std::string>& arguments) const;
    [[nodiscard]] papers::OptionTexts options_of(const papers::PaperTrace& trace) const;
    [[nodiscard]] int n_texts(const papers::PaperTrace& trace) const;
    [[nodiscard]] std::filesystem::path text_file(int number) const;

    const papers::Paper& paper_;
    PaperSettings settings_;
    std::filesystem::path folder_;
};

}  // namespace kvscope::cli
