// Which runs of an unfinished trace hold the scores of others, too: scores that do not follow the budget are in one
// part alone, and the parts of the other budgets name that run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "trace/records.h"

namespace kvscope::trace {

class SharedScores {
 public:
    explicit SharedScores(std::filesystem::path folder = {}) : folder_(std::move(folder)) {}

    /// A part that is there already. @param source the run that holds its scores; nothing where they are its own
    void add_part(int prompt, int run, std::optional<int> source);
    /// Runs of a prompt whose scores are in a part that is not there: they have to be made again, and are forgotten.
    std::set<int> forget_orphans(int prompt, const std::set<int>& runs);

    /// Of scores, bit by bit: 128 bits, so that no two of them are taken for the same.
    using Digest = std::pair<std::uint64_t, std::uint64_t>;

    struct Found {
        std::optional<int> source;     ///< run of the prompt whose part holds these very scores
        std::optional<Digest> digest;  ///< of these; nothing where there are none
    };

    /// No source where there is none, or where others take their scores from this run. Parts that were there already
    /// are read. The caller holds an h5::Guard.
    /// @throws std::invalid_argument where others take their scores from this run, and these are not the same.
    Found find(int prompt, int run, const RunRecord& record);
    /// A part that is written. @param found what `find` has given
    void written(int prompt, int run, const Found& found);

 private:
    struct Holder {
        std::optional<Digest> digest;  ///< nothing where the scores were not read yet
        std::set<int> borrowers;
    };

    Digest read_digest(int prompt, int run) const;
    bool holds(int prompt, int run, Holder& holder, const Digest& wanted) const;

    std::filesystem::path folder_;
    std::map<int, std::map<int, Holder>> holders_;  ///< by prompt and run
    std::map<int, std::map<int, int>> sources_;     ///< of borrowers, by prompt and run
};

}  // namespace kvscope::trace
