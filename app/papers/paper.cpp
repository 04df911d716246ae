#include "app/papers/paper.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <functional>
#include <initializer_list>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "analysis/drawing/figure_definition.h"
#include "analysis/results/scalars.h"
#include "app/program/input_files.h"
#include "app/program/yaml_file.h"
#include "common/replace_all.h"
#include "policies/registry/name_matching.h"
#include "policies/registry/same_window.h"

namespace kvscope::papers {
namespace {

namespace fs = std::filesystem;

constexpr const char* folder_of_papers = "papers";
constexpr std::string_view extension = ".yaml";

class PaperFile {
 public:
    explicit PaperFile(const fs::path& path) : file_(path, "paper: K-VEC") {}

    Paper read() {
        const YAML::Node& root = file_.root();
        check_keys(root, {"paper", "title", "prepare", "traces", "items"});
        paper_.name = file_name(root, text(root, "paper"));
        paper_.title = text(root, "title");
        for (const YAML::Node& entry : list(root, "prepare")) paper_.preparations.push_back(preparation(entry));
        if (const YAML::Node traces = root["traces"]) {
            if (!traces.IsMap()) file_.fail(traces, "expected the names of traces with their settings");
            for (const auto& entry : traces) paper_.traces.push_back(trace(entry.first.Scalar(), entry.second));
        }
        std::set<std::string> ids;
        for (const YAML::Node& entry : list(root, "items")) {
            PaperItem one = item(entry);
            if (!ids.insert(one.id).second) file_.fail(entry, fmt::format("the item {} exists twice", one.id));
            paper_.items.push_back(std::move(one));
        }
        return std::move(paper_);
    }

 private:
    void check_keys(const YAML::Node& map, std::initializer_list<std::string_view> known) const {
        if (!map.IsMap()) file_.fail(map, fmt::format("expected keys such as `{}`", *known.begin()));
        for (const auto& entry : map) {
            const std::string& key = entry.first.Scalar();
            if (std::ranges::find(known, key) != known.end()) continue;
            const std::vector<std::string> names(known.begin(), known.end());
            file_.fail(entry.first, fmt::format("unknown key '{}'.{} There are {}", key,
                                                policies::did_you_mean(key, names), policies::joined(names)));
        }
    }

    std::string optional_text(const YAML::Node& map, const char* key) const {
        const YAML::Node value = map[key];
        if (!value) return "";
        if (!value.IsScalar()) file_.fail(value, fmt::format("expected a text after {}", key));
        return value.Scalar();
    }

    std::string text(const YAML::Node& map, const char* key) const {
        std::string value = optional_text(map, key);
        if (value.empty()) file_.fail(map, fmt::format("{} is missing", key));
        return value;
    }

    std::string one_of(const YAML::Node& map, const char* key, std::initializer_list<std::string_view> known) const {
        std::string value = text(map, key);
        if (std::ranges::find(known, value) == known.end())
            file_.fail(map[key], fmt::format("expected {}: {}, found '{}'", key,
                                             policies::joined({known.begin(), known.end()}), value));
        return value;
    }

    int count(const YAML::Node& map, const char* key) const {
        const std::string number = optional_text(map, key);
        if (number.empty()) return 0;
        int value = 0;
        const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
        if (error != std::errc() || end != number.data() + number.size() || value < 1)
            file_.fail(map[key], fmt::format("expected a number from 1, found '{}'", number));
        return value;
    }

    YAML::Node list(const YAML::Node& map, const char* key) const {
        const YAML::Node value = map[key];
        if (value && !value.IsSequence()) file_.fail(value, fmt::format("expected a list after {}", key));
        return value ? value : YAML::Node(YAML::NodeType::Sequence);
    }

    std::vector<std::string> texts(const YAML::Node& value) const {
        std::vector<std::string> all;
        const auto add = [&](const YAML::Node& one) {
            if (!one.IsScalar()) file_.fail(one, "expected a value or a list of values");
            all.push_back(one.Scalar());
        };
        if (value.IsSequence()) {
            for (const YAML::Node& one : value) add(one);
        } else {
            add(value);
        }
        if (all.empty()) file_.fail(value, "expected a value, found an empty list");
        return all;
    }

    /// @param except a key that is not an option
    OptionTexts options(const YAML::Node& map, std::string_view except = "") const {
        OptionTexts all;
        if (!map) return all;
        if (!map.IsMap()) file_.fail(map, "expected options with their values");
        for (const auto& entry : map)
            if (entry.first.Scalar() != except) all.emplace_back(entry.first.Scalar(), texts(entry.second));
        return all;
    }

    /// Checks a text that becomes the name of a file.
    std::string file_name(const YAML::Node& at, const std::string& name) const {
        const auto is_allowed = [](unsigned char c) {
            return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
        };
        if (name.empty() || name.front() == '.' || !std::ranges::all_of(name, is_allowed))
            file_.fail(at, fmt::format("'{}' becomes the name of a file: use letters, digits, - and _", name));
        return name;
    }

    Preparation preparation(const YAML::Node& map) const {
        check_keys(map, {"name", "command", "options", "fast"});
        return {file_name(map, text(map, "name")), text(map, "command"), options(map["options"]), options(map["fast"])};
    }

    PaperTrace trace(const std::string& name, const YAML::Node& map) const {
        check_keys(map, {"command", "texts", "data", "options", "fast"});
        PaperTrace trace{file_name(map, name),
                         one_of(map, "command", {"run", "eval", "analyze"}),
                         count(map, "texts"),
                         optional_text(map, "data"),
                         options(map["options"]),
                         0,
                         {}};
        trace.n_fast_texts = trace.n_texts;
        if (const YAML::Node fast = map["fast"]) {
            trace.fast = options(fast, "texts");
            if (const int n = count(fast, "texts")) trace.n_fast_texts = n;
        }
        return trace;
    }

    std::string known_trace(const YAML::Node& map) const {
        std::string name = optional_text(map, "trace");
        if (name.empty()) return name;
        try {
            return paper_.trace(name).name;
        } catch (const std::invalid_argument& error) {
            file_.fail(map["trace"], error.what());
        }
    }

    PaperItem item(const YAML::Node& map) const {
        check_keys(map, {"id", "shows", "trace", "figure", "ranking", "command", "options", "rename", "lacks", "cannot",
                         "findings"});
        PaperItem item;
        item.paper = item.source = paper_.name;
        item.id = file_name(map, text(map, "id"));
        item.shows = text(map, "shows");
        item.trace = known_trace(map);
        item.figure = optional_text(map, map["ranking"] ? "ranking" : "figure");
        item.command = optional_text(map, "command");
        item.options = options(map["options"]);
        for (const auto& [label, names] : options(map["rename"]))
            item.renames.push_back(fmt::format("{}={}", label, names.front()));
        item.lacks = optional_text(map, "lacks");
        item.cannot = optional_text(map, "cannot");
        check_way(map, item);
        for (const YAML::Node& entry : list(map, "findings")) item.findings.push_back(finding(entry, item.trace));
        return item;
    }

    /// Checks that the item is made in one way: as a figure of a trace, by a command, or not at all.
    void check_way(const YAML::Node& map, const PaperItem& item) const {
        if (map["figure"] && map["ranking"]) file_.fail(map, fmt::format("{} has a figure and a ranking", item.id));
        const int n_ways =
            (item.figure.empty() ? 0 : 1) + (item.command.empty() ? 0 : 1) + (item.cannot.empty() ? 0 : 1);
        if (n_ways != 1)
            file_.fail(map,
                       fmt::format("{} needs one of figure, ranking, command and cannot, found {}", item.id, n_ways));
        if (item.figure.empty()) return;
        if (item.trace.empty()) file_.fail(map, fmt::format("{} needs a trace", item.id));
        try {
            (void)analysis::figure_definition(item.figure);
        } catch (const analysis::FigureError& error) {
            file_.fail(map, error.what());
        }
    }

    Finding finding(const YAML::Node& map, const std::string& trace_of_item) const {
        check_keys(map, {"says", "paper", "number", "of", "than", "sign", "budget", "where", "trace", "cannot"});
        Finding finding;
        finding.says = text(map, "says");
        finding.paper = text(map, "paper");
        finding.cannot = optional_text(map, "cannot");
        if (!finding.cannot.empty()) return finding;
        finding.number = text(map, "number");
        try {
            (void)analysis::scalar_named(finding.number);
        } catch (const analysis::FigureError& error) {
            file_.fail(map["number"], error.what());
        }
        finding.of = text(map, "of");
        finding.than = text(map, "than");
        finding.is_more = one_of(map, "sign", {"more", "less"}) == "more";
        if (const YAML::Node budgets = map["budget"]) finding.budgets = texts(budgets);
        for (const auto& [setting, values] : options(map["where"])) finding.where.emplace_back(setting, values.front());
        finding.trace = known_trace(map);
        if (finding.trace.empty()) finding.trace = trace_of_item;
        if (finding.trace.empty()) file_.fail(map, "the finding needs a trace");
        return finding;
    }

    program::YamlFile file_;
    Paper paper_;
};

template <class T, class Name>
const T& named(const std::vector<T>& all, std::string_view name, std::string_view kind, const Name& name_of) {
    const auto found = std::ranges::find_if(all, [&](const T& one) { return policies::same_name(name_of(one), name); });
    if (found != all.end()) return *found;
    std::vector<std::string> known;
    for (const T& one : all) known.push_back(name_of(one));
    throw std::invalid_argument(fmt::format("there is no {} '{}'.{} There are {}", kind, name,
                                            policies::did_you_mean(std::string(name), known), policies::joined(known)));
}

/// Returns the ids that are `id` and a letter; empty if `id` is an item itself.
std::vector<std::string> parts_of(const Paper& paper, std::string_view id) {
    std::vector<std::string> parts;
    for (const PaperItem& item : paper.items) {
        if (policies::same_name(item.id, id)) return {};
        const bool is_part = item.id.size() == id.size() + 1 && item.id.back() >= 'a' && item.id.back() <= 'z' &&
                             policies::same_name(std::string_view(item.id).substr(0, id.size()), id);
        if (is_part) parts.push_back(item.id);
    }
    return parts;
}

}  // namespace

std::string_view PaperItem::state() const { return !cannot.empty() ? "no" : lacks.empty() ? "yes" : "partly"; }

std::string Paper::heading() const { return title.starts_with(name + ":") ? title : name + ": " + title; }

const PaperTrace& Paper::trace(std::string_view wanted) const {
    return named(traces, wanted, "trace", [](const PaperTrace& one) { return one.name; });
}

Paper read_paper(const fs::path& path) { return PaperFile(path).read(); }

const std::vector<Paper>& all_papers() {
    static const std::vector<Paper> papers = [] {
        std::vector<fs::path> files;
        for (const auto& entry : fs::directory_iterator(program::asset_path(folder_of_papers)))
            if (entry.path().extension() == extension) files.push_back(entry.path());
        std::ranges::sort(files);
        std::vector<Paper> all;
        for (const fs::path& file : files) all.push_back(read_paper(file));
        return all;
    }();
    return papers;
}

const Paper& paper_named(std::string_view name) {
    if (!name.ends_with(extension))
        return named(all_papers(), name, "paper", [](const Paper& one) { return one.name; });
    static std::mutex mutex;
    static std::map<std::string, Paper, std::less<>> files;
    const std::lock_guard lock(mutex);
    if (const auto known = files.find(name); known != files.end()) return known->second;
    Paper paper = read_paper(name);
    for (PaperItem& item : paper.items) item.source = name;
    return files.emplace(name, std::move(paper)).first->second;
}

bool is_item_name(std::string_view name) { return name.find(':') != std::string_view::npos; }

const PaperItem& item_named(std::string_view reference) {
    const size_t colon = std::min(reference.rfind(':'), reference.size());
    const Paper& paper = paper_named(reference.substr(0, colon));
    const std::string_view id = reference.substr(std::min(colon + 1, reference.size()));
    if (const auto parts = parts_of(paper, id); !parts.empty())
        throw std::invalid_argument(
            fmt::format("{}:{} has several parts: name one of {}", paper.name, id, policies::joined(parts)));
    return named(paper.items, id, "item of " + paper.name, [](const PaperItem& one) { return one.id; });
}

fs::path prepared_file(const Preparation& preparation, const fs::path& folder) {
    const char* extension = preparation.command == "train-echo" ? ".safetensors" : ".json";
    return folder / "prepared" / (preparation.name + extension);
}

std::string with_prepared_files(std::string text, const Paper& paper, const fs::path& folder) {
    for (const Preparation& preparation : paper.preparations)
        replace_all(text, "{" + preparation.name + "}", prepared_file(preparation, folder).string());
    return text;
}

PaperItem with_prepared_files(PaperItem item, const Paper& paper, const fs::path& folder) {
    const auto fill = [&](std::string& text) { text = with_prepared_files(std::move(text), paper, folder); };
    for (auto& [name, values] : item.options) std::ranges::for_each(values, fill);
    std::ranges::for_each(item.renames, fill);
    for (Finding& finding : item.findings) {
        fill(finding.of);
        fill(finding.than);
    }
    return item;
}

PaperItem with_same_window(PaperItem item, int window) {
    const auto fill = [window](std::string& run) {
        const size_t at = std::min(run.find(" @ "), run.size());
        try {
            run = policies::with_default_window(run.substr(0, at), window) + run.substr(at);
        } catch (const policies::ParameterError&) {
            // The full run's label, or a policy whose file is not made yet.
        }
    };
    for (auto& [name, values] : item.options)
        if (name == "run" || name == "against") std::ranges::for_each(values, fill);
    for (Finding& finding : item.findings) {
        fill(finding.of);
        fill(finding.than);
    }
    return item;
}

OptionTexts with_replaced(OptionTexts options, const OptionTexts& fast) {
    for (const auto& [name, values] : fast) {
        const auto old = std::ranges::find(options, name, [](const auto& option) { return option.first; });
        if (old == options.end())
            options.emplace_back(name, values);
        else
            old->second = values;
    }
    return options;
}

}  // namespace kvscope::papers
