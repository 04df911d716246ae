#pragma once

#include <string>
#include <utility>
#include <vector>

#include "app/papers/judgement.h"
#include "app/papers/paper.h"

namespace kvscope::papers {

struct JudgedFinding {
    const Finding* finding = nullptr;
    std::vector<Judgement> judgements;
};

/// An item as it was made from the traces of a reproduction.
struct ReproducedItem {
    const PaperItem* item = nullptr;
    std::string pictures;            ///< HTML of the drawing and its caption; empty without a drawing
    std::string numbers;             ///< HTML of the table; empty without numbers
    std::string command;             ///< for a shell
    std::string nothing;             ///< why the item was not made; empty if it was
    std::vector<std::string> files;  ///< relative to the page
    std::vector<JudgedFinding> findings;
};

struct Reproduction {
    const Paper* paper = nullptr;
    std::string command;                                          ///< that repeats everything
    std::vector<std::pair<std::string, std::string>> conditions;  ///< such as the model and its hash
    std::vector<ReproducedItem> items;
    std::vector<std::string> commands_of_traces;
};

/// Number of judgements by outcome.
struct Counts {
    int n_hold = 0, n_do_not_hold = 0, n_unknown = 0;
};

[[nodiscard]] Counts count(const std::vector<JudgedFinding>& findings);

/// Returns "3 hold, 1 does not hold, 2 cannot be judged"; empty without findings.
[[nodiscard]] std::string in_words(const Counts& counts);

/// Returns a page without references to other servers.
[[nodiscard]] std::string page_of(const Reproduction& reproduction);

/// Returns one row per judgement: item, statement, the paper's numbers, our numbers and the outcome.
[[nodiscard]] analysis::Table table_of_findings(const Reproduction& reproduction);

}  // namespace kvscope::papers
