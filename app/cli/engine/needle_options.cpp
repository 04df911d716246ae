#include "app/cli/engine/needle_options.h"

#include "app/cli/option_validators.h"
#include "app/program/paths.h"
#include "engine/inference/prompt.h"

namespace kvscope::cli {

void declare_needles(CLI::App& app, NeedleVariables variables) {
    constexpr int most_samples = 100000;
    app.add_option("--lengths", variables.lengths, "Tokens of the contexts")
        ->delimiter(',')
        ->check(WholeNumber(1))
        ->capture_default_str();
    app.add_option("--depths", variables.depths, "Places of the needle, 0 to 1")->delimiter(',')->capture_default_str();
    app.add_option("--samples", variables.n_samples, "Prompts for each length and depth")
        ->check(WholeNumber(1, most_samples))
        ->capture_default_str();
    app.add_option("-n,--n-predict,--predict", variables.n_new, "Tokens to answer with at most")
        ->check(WholeNumber(1))
        ->capture_default_str();
    app.add_option("--haystack", variables.haystack, "Text whose sentences are the haystack (default: RULER's noise)")
        ->type_name("FILE");
}

std::string haystack_text(const std::filesystem::path& file) {
    if (file.empty()) return {};
    std::string text = program::read_text(file);
    engine::require_utf8(text, program::name_of_text(file));
    if (text.find_first_not_of(" \t\r\n") == std::string::npos)
        throw std::invalid_argument(program::name_of_text(file) +
                                    ": the haystack is empty: give a text, or leave "
                                    "--haystack out for the one that comes along");
    return text;
}

}  // namespace kvscope::cli
