#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "analysis/ranking_definition.h"
#include "app/cli/output_option.h"
#include "trace/reader.h"

namespace kvscope::cli {

/// `kvscope export TRACE --ranking NAME`.
struct RankingExport {
    std::string ranking;
    analysis::RankingOptions options;
    size_t top = 0;                ///< so many rows, the first; 0: all
    std::filesystem::path output;  ///< its extension says how; empty or "-": standard output, in `format`
    OutputFormat format;
    bool force = false;
    std::vector<std::string> renames = {};  ///< as analysis::renamed() takes them
    bool is_prompt_given = false;           ///< else say_first_prompt()
};

/// Of a trace with several prompts, on standard error that the first one is shown.
void say_first_prompt(const trace::Reader& reader);

/// Ranks and writes the table.
/// @throws analysis::FigureError for another number of traces than one, or a format that is a picture, and what
/// make_ranking and figures::export_figure throw
void export_ranking(const RankingExport& what, const std::vector<std::filesystem::path>& traces);

/// Every ranking with what it shows and its options, for people to read, in lines of at most `columns`.
std::string rankings_text(size_t columns = 100);

}  // namespace kvscope::cli
