#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace kvscope::gui {

/// The decoded part of an answer whose run was stopped or killed.
struct UnfinishedAnswer {
    int prompt = 0;
    int run_number = -1;  ///< number of the run in the trace
    std::string label;
    std::string text;
    int64_t n_tokens = 0;
    bool has_ended = false;  ///< the answer is complete; only other results of the run are missing
    [[nodiscard]] bool operator==(const UnfinishedAnswer&) const = default;
};

/// Writes answers to `<output>.part/answers.json` if the folder exists. Throws FileNotWritten.
void write_unfinished_answers(const std::filesystem::path& output, const std::vector<UnfinishedAnswer>& answers);

/// Returns the stored answers of an unfinished trace or its folder; none if the file is missing or invalid.
[[nodiscard]] std::vector<UnfinishedAnswer> read_unfinished_answers(const std::filesystem::path& trace);

}  // namespace kvscope::gui
