#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "common/json.h"
#include "engine/experiment.h"
#include "tests/engine/fake_device.h"
#include "trace/reader.h"

namespace kvscope::engine::testing {

/// A folder that is deleted after the test.
class TemporaryFolder {
 public:
    TemporaryFolder() {
        std::string name = (std::filesystem::temp_directory_path() / "kvscope-engine-XXXXXX").string();
        path_ = mkdtemp(name.data());
    }
    ~TemporaryFolder() {
        std::error_code error;
        std::filesystem::remove_all(path_, error);
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
    std::filesystem::path path_;
};

/// Returns the value of an environment variable, or else the value that the tests were built with.
[[nodiscard]] inline std::string value_of(const char* name, const char* built_with) {
    const char* given = std::getenv(name);
    return given && *given ? given : built_with;
}

[[nodiscard]] inline std::filesystem::path test_data(const std::string& name) {
    return std::filesystem::path(value_of("KVSCOPE_TEST_DATA", KVSCOPE_TEST_DATA)) / name;
}

[[nodiscard]] inline nlohmann::json golden(const std::string& name) {
    return nlohmann::json::parse(std::ifstream(test_data(name)));
}

[[nodiscard]] inline const Model& default_model_f32() {
    static SilentProgress progress;
    static const Model model = Model::open(value_of("KVSCOPE_DEFAULT_MODEL", KVSCOPE_DEFAULT_MODEL),
                                           kernels::DType::f32, progress, engine::device_of_tests());
    return model;
}

[[nodiscard]] inline const Model& tiny_model() {
    static SilentProgress progress;
    static const Model model =
        Model::open(test_data("models/llama3-gqa-sharded"), kernels::DType::f32, progress, engine::device_of_tests());
    return model;
}

/// Returns a prompt with the given ids. Policies see the first n_context tokens; by default, all.
[[nodiscard]] inline Prompt prompt_of_ids(std::vector<int32_t> ids, int64_t n_context = -1) {
    Prompt prompt;
    prompt.name = "ids";
    prompt.query_aware = n_context < 0;
    prompt.n_context = n_context < 0 ? static_cast<int64_t>(ids.size()) : n_context;
    if (n_context >= 0) prompt.question = "?";
    prompt.token_text.assign(ids.size(), "t");
    prompt.ids = std::move(ids);
    return prompt;
}

/// Returns a model of tests/data/models/.
[[nodiscard]] inline engine::Model small_model(const std::string& name, kernels::DType dtype) {
    engine::SilentProgress progress;
    return engine::Model::open(test_data("models/" + name), dtype, progress, engine::device_of_tests());
}

[[nodiscard]] inline std::vector<int32_t> some_ids(const Model& model, int n, unsigned seed = 1) {
    std::vector<int32_t> ids;
    uint64_t state = seed;
    for (int i = 0; i < n; ++i) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        ids.push_back(
            static_cast<int32_t>((state >> 33) % static_cast<uint64_t>(model.transformer().config().vocab_size)));
    }
    return ids;
}

/// Returns the budget, or for policies that keep every token a budget that they accept.
[[nodiscard]] inline std::string budget_for(const policies::Definition& definition, const std::string& budget) {
    return definition.budget_of == policies::BudgetOf::bytes && budget != "100%" ? "0.8" : budget;
}

[[nodiscard]] inline RunPlan plan(const std::string& policy, const std::string& budget) {
    return {policies::parse_policy(policy), policies::parse_budget(budget)};
}

[[nodiscard]] inline ExperimentOptions options_of(int64_t n_new, bool compare = true, bool isolated = false) {
    ExperimentOptions options;
    options.n_new = n_new;
    options.compare = compare;
    options.isolated = isolated;
    return options;
}

/// An experiment with its trace on disk.
struct Session {
    SilentProgress progress;
    std::vector<Prompt> prompts;
    trace::Writer writer;
    Experiment experiment;

    Session(const TemporaryFolder& folder, const std::string& name, const Model& model, std::vector<Prompt> given,
            const std::vector<RunPlan>& plans, const ExperimentOptions& options)
        : prompts(std::move(given)),
          writer(folder.path() / name, recipe_json(model, prompts, plans, options)),
          experiment(model, plans, options, writer, progress) {}
};

/// Runs an experiment and returns its trace.
inline trace::Reader run_experiment(const TemporaryFolder& folder, const std::string& name, const Model& model,
                                    const std::vector<Prompt>& prompts, std::vector<RunPlan> plans,
                                    const ExperimentOptions& options) {
    SilentProgress progress;
    plans = with_full_run_first(std::move(plans));
    const auto path = folder.path() / name;
    trace::Writer writer(path, recipe_json(model, prompts, plans, options));
    Experiment(model, plans, options, writer, progress).run(prompts);
    writer.finish();
    return trace::Reader(path);
}

}  // namespace kvscope::engine::testing
