#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "analysis/ranking_definition.h"
#include "app/cli/table_format_option.h"
#include "trace/reader.h"

namespace kvscope::cli {

struct RankingExport {
    std::string ranking;
    analysis::RankingOptions options;
    size_t top = 0;                ///< number of rows to write; 0 for all
    std::filesystem::path output;  ///< empty or "-" for stdout
    OutputFormat format;
    bool force = false;
    std::vector<std::string> renames = {};  ///< in the syntax of analysis::rename_runs()
    bool is_prompt_given = false;           ///< if false, warn_only_first_prompt_shown() is called
};

/// Prints to stderr that the first prompt is shown, if the trace has several prompts.
void warn_only_first_prompt_shown(const trace::Reader& reader);

/// Writes the ranking's table. @throws analysis::FigureError for several traces or an image format
void export_ranking(const RankingExport& what, const std::vector<std::filesystem::path>& traces);

[[nodiscard]] std::string rankings_text(size_t columns = 100);

}  // namespace kvscope::cli
