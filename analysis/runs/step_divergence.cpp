#include "analysis/runs/step_divergence.h"

#include <fmt/format.h>

namespace kvscope::analysis {

std::optional<StepDivergence> read_step_divergence(const trace::Reader& reader, int prompt, int run) {
    namespace schema = trace::schema;
    const auto place = trace::Place::of_run(prompt, run);
    if (!reader.has(place, schema::run::step_kl) || !reader.has(place, schema::run::step_agreement))
        return std::nullopt;
    StepDivergence steps{reader.read<float>(place, schema::run::step_kl),
                         reader.read<uint8_t>(place, schema::run::step_agreement)};
    if (steps.kl.size() != steps.agreement.size())
        throw trace::DamagedTrace(fmt::format(
            "{}: /prompts/{}/runs/{}/{}: expected one value for each of the {} steps of {}, found {}",
            reader.path().string(), reader.prompt_number(prompt), reader.run_number(prompt, run),
            schema::run::step_agreement.path, steps.kl.size(), schema::run::step_kl.path, steps.agreement.size()));
    return steps;
}

}  // namespace kvscope::analysis
