#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace kvscope::gui {

/// As much of an answer as was decoded when its run was stopped, or its program killed.
struct UnfinishedAnswer {
    int prompt = 0;
    int run_number = -1;  ///< in the trace to be
    std::string label;
    std::string text;
    int64_t n_tokens = 0;
    bool has_ended = false;  ///< it is whole, and only the run's other results lack
    bool operator==(const UnfinishedAnswer&) const = default;
};

/// Into the folder of the unfinished trace, `<output>.part/answers.json`, which goes when the trace is whole. Nothing
/// is written where the folder is not there. @throws figures::OutputFailed
void write_unfinished_answers(const std::filesystem::path& output, const std::vector<UnfinishedAnswer>& answers);

/// Those of an unfinished trace; none where there is no such file, or it cannot be understood.
/// @param trace its path, or that of its folder
std::vector<UnfinishedAnswer> read_unfinished_answers(const std::filesystem::path& trace);

}  // namespace kvscope::gui
