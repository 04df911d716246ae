#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/active_run.h"
#include "engine/answering.h"
#include "engine/result_writer.h"

namespace kvscope::engine {

/// What the full cache answered to one question.
struct FullAnswer {
    Generation generation;
    FullReference reference;
    std::vector<float> attention;  ///< (L, H, N) as `answer_attention`
    std::string error;             ///< why there is no reference; empty where there is one
};

/// What became of a run's last question.
struct Answered {
    bool failed = false;
    std::string text;
};

/// What an experiment's answers are made with and told to.
struct AnswerTools {
    const Model& model;
    const ExperimentOptions& options;
    const Experiment& owner;
    Answering& answering;
    ResultWriter& results;
    Progress& progress;
};

/// Tells the owner's listeners of the runs' tokens, by the runs' own numbers.
OnToken tokens_of(std::span<ActiveRun* const> runs, const Experiment& owner);
AskSwitch switches_of(std::span<ActiveRun* const> runs, const Experiment& owner);

/// The answers of all runs to one question: decoded as one batch, and each compared and written as soon as it and
/// the full run's, which it is compared with, have ended. Where the full run fails, the others are written without
/// a comparison.
class AnswerWriter {
 public:
    /// @param starts of each of the runs
    /// @param n_context tokens that the policies saw
    /// @param answered by plan; receives what became of each run
    AnswerWriter(const AnswerTools& tools, int prompt, const std::vector<ActiveRun*>& runs,
                 std::vector<AnswerStart>& starts, int64_t n_context, std::vector<Answered>& answered)
        : tools_(tools),
          prompt_(prompt),
          runs_(runs),
          starts_(starts),
          n_context_(n_context),
          answered_(answered),
          generations_(runs.size()) {}

    /// @param known the full run's answer, which is then not decoded again; nullptr where it is not known
    /// @throws Cancelled; what the writer throws
    void decode(FullAnswer* known);

 private:
    void adopt(FullAnswer& known);
    void write_those_waiting(Progress& shown);
    /// Once the full run has ended.
    void read_reference(Progress& shown);
    void compare(std::vector<Comparison>& comparisons, Progress& shown);
    void write(size_t i, const Comparison& comparison, ScoreRoom& room);
    const Transformer& transformer() const { return tools_.model.transformer(); }

    const AnswerTools& tools_;
    int prompt_;
    const std::vector<ActiveRun*>& runs_;
    std::vector<AnswerStart>& starts_;
    int64_t n_context_;
    std::vector<Answered>& answered_;
    std::vector<Generation> generations_;
    std::vector<size_t> waiting_;
    std::optional<FullReference> reference_;
    std::string no_reference_;  ///< why there will be none; empty where there is one, or may come
    std::vector<float> attention_;
};

}  // namespace kvscope::engine
