#include "engine/tasks/api/benchmark_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "common/bounded_json.h"
#include "engine/common/engine_error.h"
#include "engine/tasks/api/sample_line.h"

namespace kvscope::engine {
namespace {

struct Benchmark {
    std::string_view name, task;
    std::vector<const char*> fields;
    std::string_view remedy;
};

const std::vector<Benchmark>& benchmarks() {
    static const std::vector<Benchmark> all{
        {"LongBench", "longbench", {"input", "context", "answers", "dataset"}, "use --task longbench"},
        {"LongBench-v2", "longbench-v2", {"context", "question", "choice_A", "answer"}, "use --task longbench-v2"},
        {"samples of your own", "jsonl", {"context", "question", "answers"}, "use --task jsonl"},
        {"RULER", "", {"input", "outputs"}, "--task ruler makes RULER's prompts itself"},
        {"LooGLE", "", {"qa_pairs"}, "kvscope has no task for it"}};
    return all;
}

bool has_fields(const nlohmann::json& object, const Benchmark& benchmark) {
    return std::ranges::all_of(benchmark.fields, [&](const char* field) { return object.contains(field); });
}

nlohmann::json first_record(std::string_view text) {
    std::string_view first;
    for_each_element(text, [&](std::string_view element, int, int) {
        first = element;
        return false;
    });
    if (first.empty())
        for_each_line_with_text(text, [&](std::string_view line, int) {
            first = line;
            return false;
        });
    return bounded_json::parse_or_discard(first);
}

}  // namespace

void for_each_element(std::string_view text,
                      const std::function<bool(std::string_view element, int number, int line)>& use) {
    size_t at = text.find_first_not_of(" \t\r\n");
    if (at == std::string_view::npos || text[at] != '[') return;
    int line = 1 + static_cast<int>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
    int number = 0, depth = 0, first_line = line;
    bool in_string = false;
    size_t begin = std::string_view::npos;
    const auto end_element = [&](size_t end) {
        if (begin == std::string_view::npos) return true;
        const std::string_view element = text.substr(begin, end - begin);
        begin = std::string_view::npos;
        return use(element, ++number, first_line);
    };
    for (++at; at < text.size(); ++at) {
        const char c = text[at];
        line += c == '\n' ? 1 : 0;
        if (in_string) {
            at += c == '\\' ? 1 : 0;
            in_string = c != '"';
            continue;
        }
        if (depth == 0 && (c == ',' || c == ']')) {
            if (!end_element(at) || c == ']') return;
            continue;
        }
        if (begin == std::string_view::npos && std::string_view(" \t\r\n").find(c) == std::string_view::npos) {
            begin = at;
            first_line = line;
        }
        in_string = c == '"';
        depth += c == '{' || c == '[' ? 1 : c == '}' || c == ']' ? -1 : 0;
    }
    (void)end_element(text.size());  // the file ends within an element
}

void refuse_other_benchmark(std::string_view text, const std::string& file, std::string_view task) {
    const auto record = first_record(text);
    if (!record.is_object()) return;
    const auto own = std::ranges::find(benchmarks(), task, &Benchmark::task);
    if (own == benchmarks().end() || has_fields(record, *own)) return;
    for (const Benchmark& other : benchmarks())
        if (has_fields(record, other))
            throw UsageError(
                fmt::format("{}: this looks like {}, not like {}: {}", file, other.name, own->name, other.remedy));
}

}  // namespace kvscope::engine
