#include "app/cli/reproduce/reproduced_items.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <span>
#include <string_view>
#include <utility>

#include "analysis/figures_of_several_traces.h"
#include "analysis/results/result.h"
#include "analysis/tables/table_format.h"
#include "app/cli/sweep/child_processes.h"
#include "app/cli/terminal.h"
#include "app/figures/export_figure.h"
#include "app/papers/item_figure.h"
#include "app/program/version.h"
#include "common/file_text.h"
#include "common/stopped.h"
#include "common/whole_file.h"
#include "trace/reader.h"

namespace kvscope::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view picture_extensions[] = {"pdf", "svg", "png"};
constexpr std::string_view table_extensions[] = {"csv", "md", "tex"};
constexpr size_t most_rows_on_page = 200;

class ItemMaker {
 public:
    ItemMaker(const PaperCommands& commands, const SweepFolder& folder,
              const std::map<std::string, std::string>& missing, const std::stop_token& stop)
        : commands_(commands), folder_(folder), missing_(missing), stop_(stop) {}

    papers::ReproducedItem make(const papers::PaperItem& item) {
        papers::ReproducedItem made;
        made.item = &item;
        if (item.cannot.empty()) {
            made.command = papers::command_of_item(item, trace_file(item.trace), file_of(item, "pdf"));
            try {
                if (item.command.empty())
                    draw(item, made);
                else
                    run_command(item, made);
            } catch (const Stopped&) {
                throw;
            } catch (const FileNotWritten&) {
                throw;
            } catch (const std::exception& error) {
                made.nothing = error.what();
            }
        } else {
            made.nothing = item.cannot;
        }
        for (const papers::Finding& finding : item.findings) made.findings.push_back({&finding, judged(finding)});
        return made;
    }

 private:
    fs::path trace_file(const std::string& name) const { return folder_.path() / (name + ".h5"); }

    fs::path file_of(const papers::PaperItem& item, std::string_view extension) const {
        return folder_.path() / "figures" / fmt::format("{}-{}.{}", item.paper, item.id, extension);
    }

    const trace::Reader& reader(const std::string& name) {
        if (const auto found = missing_.find(name); found != missing_.end()) throw std::runtime_error(found->second);
        if (const auto known = readers_.find(name); known != readers_.end()) return known->second;
        return readers_.emplace(name, trace::Reader(trace_file(name))).first->second;
    }

    std::span<const analysis::Result> results(const std::string& name) {
        if (const auto known = results_.find(name); known != results_.end()) return known->second;
        return results_.emplace(name, analysis::results_of_trace(reader(name))).first->second;
    }

    std::vector<papers::Judgement> judged(const papers::Finding& finding) {
        if (!finding.cannot.empty()) return papers::judge(finding, {});
        try {
            return papers::judge(finding, results(finding.trace));
        } catch (const std::exception& error) {
            return papers::not_judged(finding, error.what());
        }
    }

    void add_files(papers::ReproducedItem& made, const std::vector<fs::path>& files) const {
        for (const fs::path& file : files) made.files.push_back(file.lexically_relative(folder_.path()).string());
    }

    void draw(const papers::PaperItem& item, papers::ReproducedItem& made) {
        const papers::ItemTrace shown = papers::trace_of_item(reader(item.trace), item);
        const auto& definition = analysis::figure_definition(item.figure);
        const analysis::TracePart part{&shown.reader, shown.options};
        analysis::check_figure(definition, {&part, 1});
        figures::Exported exported{nullptr, [&] { return analysis::make_numbers(definition, {&part, 1}); }};
        if (definition.has_drawing()) exported.figure = [&] { return analysis::make_figure(definition, {&part, 1}); };
        const figures::ExportOptions options{.creator = std::string("kvscope ") + program::version()};
        const auto write = [&](std::string_view extension) {
            if (stop_.stop_requested()) throw Stopped();
            add_files(made, figures::export_figure(exported, file_of(item, extension), options, true));
        };
        if (exported.figure) {
            for (const std::string_view extension : picture_extensions) write(extension);
            made.pictures = figures::html_of_pictures(exported.figure(), options);
        }
        for (const std::string_view extension : table_extensions) write(extension);
        const analysis::Table numbers = exported.numbers();
        if (numbers.rows.size() <= most_rows_on_page || !numbers.for_people.empty())
            made.numbers = analysis::format_table(numbers, analysis::TableFormat::html);
    }

    void run_command(const papers::PaperItem& item, papers::ReproducedItem& made) {
        for (const std::string_view extension : {"svg", "pdf", "png", "csv"}) {
            const fs::path file = file_of(item, extension);
            std::vector<std::string> arguments = commands_.item(item);
            arguments.insert(arguments.end(), {"--force", "--output=" + file.string()});
            ChildProcesses children({});
            children.start(0, arguments, {}, folder_.logs() / (item.id + ".log"));
            if (const ChildEnd end = children.wait(stop_); end.exit_code != 0) throw std::runtime_error(end.reason);
            add_files(made, {file});
        }
        made.pictures = fmt::format("<p><img src=\"{}\" alt=\"\"></p>\n",
                                    figures::data_url_of_svg(file_text(file_of(item, "svg"))));
    }

    const PaperCommands& commands_;
    const SweepFolder& folder_;
    const std::map<std::string, std::string>& missing_;
    const std::stop_token& stop_;
    std::map<std::string, trace::Reader> readers_;
    std::map<std::string, std::vector<analysis::Result>> results_;
};

}  // namespace

std::vector<papers::ReproducedItem> reproduce_items(const papers::Paper& paper, const PaperCommands& commands,
                                                    const SweepFolder& folder,
                                                    const std::map<std::string, std::string>& missing, bool quiet,
                                                    const std::stop_token& stop) {
    std::vector<papers::ReproducedItem> all;
    ItemMaker maker(commands, folder, missing, stop);
    for (const papers::PaperItem& item : paper.items) {
        if (stop.stop_requested()) throw Stopped();
        all.push_back(maker.make(item));
        const papers::ReproducedItem& made = all.back();
        if (!quiet)
            print_to_stderr(fmt::format("{} of {}: {} {}", all.size(), paper.items.size(), item.full_id(),
                                        made.nothing.empty() ? "made" : "not made: " + one_line(made.nothing)));
    }
    return all;
}

}  // namespace kvscope::cli
