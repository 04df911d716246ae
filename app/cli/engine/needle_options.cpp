#include "app/cli/engine/needle_options.h"

#include "app/cli/option_validators.h"
#include "app/program/input_files.h"
#include "engine/prefill/prompt.h"

namespace kvscope::cli {

void declare_needles(CLI::App& app, NeedleVariables variables) {
    constexpr int most_samples = 100000;
    app.add_option("--lengths", variables.lengths, "Lengths of the contexts, in tokens")
        ->delimiter(',')
        ->check(WholeNumber(1))
        ->capture_default_str();
    app.add_option("--depths", variables.depths, "Positions of the needle in the context, from 0 (start) to 1 (end)")
        ->delimiter(',')
        ->capture_default_str();
    app.add_option("--samples", variables.n_samples, "Number of prompts per length and depth")
        ->check(WholeNumber(1, most_samples))
        ->capture_default_str();
    app.add_option("-n,--n-predict,--predict", variables.n_new, "Largest number of answer tokens")
        ->check(WholeNumber(1))
        ->capture_default_str();
    app.add_option("--haystack", variables.haystack, "Text file for the haystack (default: RULER's noise sentences)")
        ->type_name("FILE");
}

std::string haystack_text(const std::filesystem::path& file) {
    if (file.empty()) return {};
    std::string text = program::read_text(file);
    engine::require_utf8(text, program::display_name_of_input(file));
    if (text.find_first_not_of(" \t\r\n") == std::string::npos)
        throw std::invalid_argument(program::display_name_of_input(file) +
                                    ": the haystack is empty: give a text, or omit --haystack for the built-in "
                                    "haystack");
    return text;
}

}  // namespace kvscope::cli
