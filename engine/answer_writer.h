#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/active_run.h"
#include "engine/answer_phases.h"
#include "engine/run_records.h"

namespace kvscope::engine {

struct FullAnswer {
    Generation generation;
    FullReference reference;
    std::vector<float> attention;  ///< (L, H, N) from `answer_attention`
    std::string error;             ///< why the reference is missing; empty if it exists
};

/// A run's answer to the last question.
struct Answered {
    bool failed = false;
    std::string text;
};

struct AnswerTools {
    const Model& model;
    const ExperimentOptions& options;
    const Experiment& owner;
    AnswerPhases& answering;
    ResultWriter& results;
    Progress& progress;
};

[[nodiscard]] OnToken make_token_callback(std::span<ActiveRun* const> runs, const Experiment& owner);
[[nodiscard]] AskSwitch make_switch_callback(std::span<ActiveRun* const> runs, const Experiment& owner);

/// Decodes the answers of all runs to one question, compares each with the full run's answer, and writes them.
/// If the full run fails, the other runs are written without comparison.
class AnswerWriter {
 public:
    /// @param answered receives the result of each run, by the index of its plan
    AnswerWriter(const AnswerTools& tools, int prompt, const std::vector<ActiveRun*>& runs,
                 std::vector<AnswerStart>& starts, int64_t n_context, std::vector<Answered>& answered)
        : tools_(tools),
          prompt_(prompt),
          runs_(runs),
          starts_(starts),
          n_context_(n_context),
          answered_(answered),
          generations_(runs.size()) {}

    /// @param known the full run's answer if it is already decoded; otherwise nullptr
    void decode(FullAnswer* known);

 private:
    void adopt(FullAnswer& known);
    void write_those_waiting(Progress& shown);
    void read_reference(Progress& shown);
    void compare(std::vector<Comparison>& comparisons, Progress& shown);
    void write(size_t i, const Comparison& comparison, ScoreBuffer& room);
    [[nodiscard]] const Transformer& transformer() const { return tools_.model.transformer(); }

    const AnswerTools& tools_;
    int prompt_;
    const std::vector<ActiveRun*>& runs_;
    std::vector<AnswerStart>& starts_;
    int64_t n_context_;
    std::vector<Answered>& answered_;
    std::vector<Generation> generations_;
    std::vector<size_t> waiting_;
    std::optional<FullReference> reference_;
    std::string no_reference_;            ///< why the reference cannot be read; empty otherwise
    std::vector<float> attention_;        ///< of the full run's answer, (L, H, N)
    std::vector<float> group_attention_;  ///< the same, (L, G, N)
};

}  // namespace kvscope::engine
