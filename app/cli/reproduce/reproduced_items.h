#pragma once

#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "app/cli/reproduce/paper_commands.h"
#include "app/cli/sweep/sweep_folder.h"
#include "app/papers/page.h"

namespace kvscope::cli {

/// Draws the items of a paper from the traces in the folder, writes their files to figures/, and judges the findings.
/// Prints progress to stderr unless `quiet`.
/// @param missing why a trace does not exist, by its name
/// @throws Stopped; FileNotWritten
[[nodiscard]] std::vector<papers::ReproducedItem> reproduce_items(const papers::Paper& paper,
                                                                  const PaperCommands& commands,
                                                                  const SweepFolder& folder,
                                                                  const std::map<std::string, std::string>& missing,
                                                                  bool quiet, const std::stop_token& stop);

}  // namespace kvscope::cli
