#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "common/split.h"
#include "common/stopped.h"
#include "engine/common/engine_error.h"
#include "engine/tasks/api/task.h"
#include "engine/tasks/ruler/subsets.h"
#include "policies/registry/name_matching.h"

namespace kvscope::engine {
namespace ruler_file {
namespace {

using ruler::Subset;

struct UserFile {
    std::string_view option, help, what, source;
};
constexpr UserFile user_files[] = {
    {"essays", "Paul Graham's essays as JSON, for niah_single_2, _3, niah_multikey_1, _value, _query",
     "PaulGrahamEssays.json, which scripts/data/synthetic/json/download_paulgraham_essay.py writes",
     "https://github.com/NVIDIA/RULER"},
    {"punkt", "NLTK's parameters for splitting sentences, needed with --essays",
     "the package punkt_tab, write punkt.txt with `grep \"\" *.t* > punkt.txt` in its folder english",
     "https://github.com/nltk/nltk_data"},
    {"words", "RULER's english_words.json, for cwe with long prompts", "", ""},
    {"squad", "SQuAD's dev-v2.0.json, for qa_1", "dev-v2.0.json", "https://rajpurkar.github.io/SQuAD-explorer"},
    {"hotpotqa", "HotpotQA's hotpot_dev_distractor_v1.json, for qa_2", "hotpot_dev_distractor_v1.json",
     "https://hotpotqa.github.io"},
};

std::vector<const Subset*> wanted_subsets(const std::string& list) {
    std::vector<std::string> names;
    for (const Subset& subset : ruler::subsets()) names.emplace_back(subset.name);
    std::vector<const Subset*> wanted;
    for (const std::string_view name : split(list, ',')) {
        const auto found = std::ranges::find_if(
            ruler::subsets(), [&](const Subset& subset) { return policies::same_name(subset.name, name); });
        if (found == ruler::subsets().end())
            throw UsageError(fmt::format("--subsets: unknown subset '{}'.{} Subsets: {}", name,
                                         policies::did_you_mean(name, names), policies::joined(names)));
        if (std::ranges::find(wanted, &*found) != wanted.end())
            throw UsageError(fmt::format("--subsets: {} is given twice: give each subset once", found->name));
        wanted.push_back(&*found);
    }
    return wanted;
}

void require_files(const Subset& subset, const TaskOptions& options) {
    for (const std::string_view option : subset.files) {
        if (options.files.contains(std::string(option))) continue;
        const UserFile& file = *std::ranges::find(user_files, option, &UserFile::option);
        throw UsageError(fmt::format(
            "--subsets: {} needs a file that kvscope does not contain: fetch {} from {}, put it anywhere, and name it "
            "with --{}",
            subset.name, file.what, file.source, option));
    }
}

void require_possible_lengths(const std::vector<int64_t>& lengths, int64_t context_length) {
    for (size_t i = 0; i < lengths.size(); ++i) {
        if (lengths[i] > context_length)
            throw UsageError(
                fmt::format("--lengths: expected at most {}, the model's context for prompt and answer, found {}: "
                            "use shorter lengths",
                            context_length, lengths[i]));
        if (std::find(lengths.begin(), lengths.begin() + static_cast<std::ptrdiff_t>(i), lengths[i]) !=
            lengths.begin() + static_cast<std::ptrdiff_t>(i))
            throw UsageError(fmt::format("--lengths: {} is given twice: give each length once", lengths[i]));
    }
}

/// Returns the samples "<subset>-<length>-<number>", ordered by number, then by length, then by subset.
std::vector<TaskSample> make_samples(const SampleRequest& request) {
    const auto& values = request.options.values;
    const auto wanted = wanted_subsets(values.text("subsets"));
    const auto lengths = values.integers("lengths");
    const int64_t n_samples = values.integer("samples");
    const uint64_t seed = values.seed("seed");
    if (seed > std::numeric_limits<uint32_t>::max())
        throw UsageError(fmt::format("--seed {}: expected at most {}, the largest seed of NumPy: use a smaller seed",
                                     seed, std::numeric_limits<uint32_t>::max()));
    require_possible_lengths(lengths, request.context_length);
    for (const Subset* subset : wanted) require_files(*subset, request.options);

    const auto n_places = lengths.size() * wanted.size();
    std::vector<TaskSample> samples(n_places * static_cast<size_t>(n_samples));
    for (size_t s = 0; s < wanted.size(); ++s) {
        const Subset& subset = *wanted[s];
        const ruler::SubsetRequest of_subset{
            .name = std::string(subset.name),
            .n_new = subset.n_new,
            .n_samples = n_samples,
            .seed = static_cast<uint32_t>(seed),
            .files = request.options.files,
            .file_name = [&](const std::string& option) { return values.text(option); },
            // RULER counts with `tokenize` of transformers, which parses control tokens and adds none.
            .count_tokens =
                [&](const std::string& text) {
                    return static_cast<int64_t>(request.tokenizer.encode(text, false, true, request.stop).size());
                },
            .stop = request.stop};
        const auto prompts_of = subset.prompts(of_subset);
        for (size_t l = 0; l < lengths.size(); ++l) {
            auto prompts = prompts_of(lengths[l]);
            for (size_t i = 0; i < prompts.size(); ++i) {
                const size_t number = i * n_places + l * wanted.size() + s;
                samples[number] = {.id = fmt::format("{}-{}-{}", subset.name, lengths[l], i),
                                   .number = static_cast<int>(number),
                                   .context = std::move(prompts[i].context),
                                   .question = std::move(prompts[i].question),
                                   .answers = std::move(prompts[i].answers),
                                   .spans = std::move(prompts[i].spans),
                                   .length = lengths[l],
                                   .subset = std::string(subset.name),
                                   .separator = "",
                                   .n_new = subset.n_new,
                                   .scorer = subset.scorer};
            }
        }
    }
    return samples;
}

policies::Parameter seed_of_ruler() {
    auto parameter = policies::seed_parameter("seed", "Seed of the first prompt of each subset and length");
    parameter.fallback = std::string("42");
    return parameter;
}

std::vector<policies::Parameter> parameters() {
    using namespace policies;
    std::vector<Parameter> all{
        text_parameter("subsets", "niah_single_1,niah_multikey_2,niah_multikey_3,vt,fwe",
                       "Parts of the task: niah_single_1 to _3, niah_multikey_1 to _3, niah_multivalue, "
                       "niah_multiquery, vt, cwe, fwe, qa_1, qa_2"),
        integers_parameter("lengths", "1000,2000,4000", {.low = 1},
                           "Largest numbers of tokens of prompt and answer, RULER's max_seq_length"),
        integer_parameter("samples", 5, {.low = 1, .high = 100000}, "Number of prompts per subset and length"),
        seed_of_ruler()};
    for (const UserFile& file : user_files)
        all.push_back(file_parameter(std::string(file.option), std::string(file.help)));
    return all;
}

}  // namespace
}  // namespace ruler_file

Task ruler_task() {
    using namespace ruler_file;
    return {
        .name = "ruler",
        .title = "The prompts of RULER: needles, variables, word counts and questions about documents",
        .citation =
            "Hsieh et al., RULER: What's the Real Context Size of Your Long-Context Language Models?, "
            "COLM 2024, arXiv:2404.06654; prompts of github.com/NVIDIA/RULER at commit c3f5e3b",
        .parameters = parameters(),
        .n_new = 128,
        .assets = {std::string(ruler::adjective_file), std::string(ruler::noun_file), std::string(ruler::verb_file)},
        .scorer = string_match_all(),
        .make_samples = make_samples};
}

}  // namespace kvscope::engine
