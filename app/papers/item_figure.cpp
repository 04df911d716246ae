#include "app/papers/item_figure.h"

#include <fmt/format.h>

#include <charconv>
#include <exception>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "analysis/runs/rename_runs.h"
#include "analysis/shell_command.h"
#include "app/program/input_files.h"
#include "app/program/number_list.h"

namespace kvscope::papers {
namespace {

double number_of(const std::string& name, const std::string& text) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size())
        throw std::invalid_argument(fmt::format("{} needs a number, found '{}'", name, text));
    return value;
}

std::string joined_values(const std::vector<std::string>& values) { return fmt::format("{}", fmt::join(values, ",")); }

void set_option(analysis::FigureOptions& options, const analysis::FigureDefinition& definition, const std::string& name,
                const std::vector<std::string>& values) {
    const std::string text = joined_values(values);
    if (name == "run" || name == "runs") {
        options.runs.assign(values.begin(), values.end());
    } else if (name == "layer" || name == "layers") {
        options.layers = program::number_list(text);
    } else if (name == "head" || name == "heads") {
        options.heads = program::number_list(text, "heads");
    } else if (name == "column" || name == "columns") {
        options.columns = values;
    } else if (name == "source") {
        options.source = text;
    } else if (name == "prompt") {
        options.prompt = program::number_list(text, "prompts").at(0);
    } else if (name == "token" || name == "tokens") {
        const auto [first, last] = program::number_range(text, name);
        options.tokens = {{first, last}};
    } else if (name == "width") {
        options.width_mm = number_of(name, text);
    } else if (name == "height") {
        options.height_mm = number_of(name, text);
    } else if (const auto* own = analysis::find_option(definition, name); own && own->is_own()) {
        options.own[name] = text;
    } else {
        throw std::invalid_argument(fmt::format("{} has no option {}; it uses {}", definition.name, name,
                                                analysis::options_in_words(definition.options)));
    }
}

}  // namespace

analysis::FigureOptions figure_options(const PaperItem& item) {
    const analysis::FigureDefinition& definition = analysis::figure_definition(item.figure);
    analysis::FigureOptions options;
    try {
        for (const auto& [name, values] : item.options) set_option(options, definition, name, values);
        analysis::check_options(definition, options);
    } catch (const std::invalid_argument& error) {
        throw std::invalid_argument(fmt::format("{}: {}", item.full_id(), error.what()));
    }
    return options;
}

analysis::FigureOptions with_options_of_item(analysis::FigureOptions given, const PaperItem& item) {
    const analysis::FigureOptions own = figure_options(item);
    if (given.runs.empty()) given.runs = own.runs;
    if (given.layers.empty()) given.layers = own.layers;
    if (given.heads.empty()) given.heads = own.heads;
    if (given.columns.empty()) given.columns = own.columns;
    if (given.source.empty()) given.source = own.source;
    if (given.width_mm == 0) given.width_mm = own.width_mm;
    if (given.height_mm == 0) given.height_mm = own.height_mm;
    if (!given.tokens) given.tokens = own.tokens;
    given.own.insert(own.own.begin(), own.own.end());
    return given;
}

std::vector<std::string> known_renames(const PaperItem& item, const std::vector<trace::Reader>& readers) {
    std::vector<std::string> known;
    for (const std::string& rename : item.renames) {
        try {
            (void)analysis::new_labels_of_settings(readers, {rename});
            known.push_back(rename);
        } catch (const analysis::FigureError&) {
            // Another trace than the paper's may lack a policy.
        }
    }
    return known;
}

ItemTrace trace_of_item(const trace::Reader& reader, const PaperItem& item) {
    std::vector<trace::Reader> readers;
    readers.push_back(reader.with_stop(reader.stop_token()));
    analysis::FigureOptions options = figure_options(item);
    if (const auto renames = known_renames(item, readers); !renames.empty()) {
        options.setting_labels = analysis::new_labels_of_settings(readers, renames);
        readers = analysis::rename_runs(readers, renames);
    }
    return {std::move(readers.front()), std::move(options)};
}

std::string why_no_item(const PaperItem& item, const trace::Reader& reader) {
    if (!item.cannot.empty()) return item.cannot;
    if (item.figure.empty()) return "the item is drawn by a command, not from a trace";
    try {
        const ItemTrace made = trace_of_item(reader, item);
        return analysis::why_no_figure(analysis::figure_definition(item.figure), made.reader, made.options);
    } catch (const std::exception& error) {
        return error.what();
    }
}

std::string command_of_item(const PaperItem& item, const std::filesystem::path& trace,
                            const std::filesystem::path& output) {
    if (!item.command.empty()) {
        analysis::ShellCommand command("kvscope " + item.command);
        for (const auto& [name, values] : item.options) {
            for (const std::string& value : values) {
                if (value == "true")
                    command.add("--" + name);
                else
                    command.add("--" + name, program::with_asset_path(value));
            }
        }
        command.add_path("-o", output);
        return command.text();
    }
    analysis::ShellCommand command("kvscope export");
    command.add_path(trace);
    command.add("--figure", item.reference());
    command.add_path("-o", output);
    return command.text();
}

}  // namespace kvscope::papers
