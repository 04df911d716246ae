#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "analysis/ranking_definition.h"
#include "app/cli/output_option.h"
#include "trace/reader.h"

namespace kvscope::cli {

struct RankingExport {
    std::string ranking;
    analysis::RankingOptions options;
    size_t top = 0;                ///< number of rows to write; 0 for all
    std::filesystem::path output;  ///< format from the extension; empty or "-" for stdout in `format`
    OutputFormat format;
    bool force = false;
    std::vector<std::string> renames = {};  ///< in the syntax of analysis::renamed()
    bool is_prompt_given = false;           ///< if false, say_first_prompt() is called
};

/// Prints to stderr that the first prompt is shown, if the trace has several.
void say_first_prompt(const trace::Reader& reader);

/// Computes the ranking and writes its table. @throws analysis::FigureError unless there is one trace and a table
/// format
void export_ranking(const RankingExport& what, const std::vector<std::filesystem::path>& traces);

std::string rankings_text(size_t columns = 100);

}  // namespace kvscope::cli
