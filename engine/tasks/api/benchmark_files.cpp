#include "engine/tasks/api/benchmark_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "common/bounded_json.h"
#include "engine/common/engine_error.h"
#include "engine/tasks/api/sample_line.h"

namespace kvscope::engine {
namespace {

/// One format of a benchmark's records.
struct Benchmark {
    std::string_view name, task;
    std::vector<const char*> fields;
    std::string_view remedy;
    bool (*matches)(const nlohmann::json& record) = nullptr;  ///< what a record with these fields also needs
};

bool has_any(const nlohmann::json& record, std::initializer_list<const char*> fields) {
    return std::ranges::any_of(fields, [&](const char* field) { return record.contains(field); });
}

bool has_no_context(const nlohmann::json& record) { return !has_any(record, {"context", "ctxs", "choice_A"}); }

bool ends_as_gsm8k(const nlohmann::json& record) {
    const auto& answer = record["answer"];
    return has_no_context(record) && answer.is_string() &&
           answer.get_ref<const std::string&>().find("#### ") != std::string::npos;
}

/// AIME's files differ in the names of their fields. All answers are whole numbers of at most three digits.
bool looks_like_aime(const nlohmann::json& record) {
    if (!has_no_context(record) || !has_any(record, {"problem", "Problem", "question"})) return false;
    if (!has_any(record, {"answer", "Answer"}) || has_any(record, {"subject", "unique_id"})) return false;
    const auto& answer = record.contains("answer") ? record["answer"] : record["Answer"];
    if (!answer.is_string()) return answer.is_number_integer();
    const auto& text = answer.get_ref<const std::string&>();
    return !text.empty() && text.size() <= 3 && text.find_first_not_of("0123456789") == std::string::npos;
}

const std::vector<Benchmark>& benchmarks() {
    static const std::vector<Benchmark> all{
        {"LongBench", "longbench", {"input", "context", "answers", "dataset"}, "use --task longbench"},
        {"LongBench-v2", "longbench-v2", {"context", "question", "choice_A", "answer"}, "use --task longbench-v2"},
        {"HELMET", "helmet", {"question", "answers", "ctxs"}, "use --task helmet"},
        {"HELMET", "helmet", {"qid", "query", "ctxs"}, "use --task helmet"},
        {"HELMET", "helmet", {"context", "question", "answer", "num_kvs"}, "use --task helmet"},
        {"HELMET", "helmet", {"context", "outputs"}, "use --task helmet"},
        {"SCBench", "scbench", {"multi_turns"}, "use --task scbench"},
        {"samples of your own", "jsonl", {"context", "question", "answers"}, "use --task jsonl"},
        {"MATH-500", "math500", {"problem", "answer", "subject", "level"}, "use --task math500"},
        {"GSM8K", "gsm8k", {"question", "answer"}, "use --task gsm8k", ends_as_gsm8k},
        {"AIME", "aime", {}, "use --task aime", looks_like_aime},
        {"RULER", "", {"input", "outputs"}, "--task ruler makes RULER's prompts itself"},
        {"InfiniteBench", "infinitebench", {"context", "input", "answer"}, "use --task infinitebench"},
        {"LooGLE", "loogle", {"qa_pairs"}, "use --task loogle"}};
    return all;
}

bool has_fields(const nlohmann::json& object, const Benchmark& benchmark) {
    return std::ranges::all_of(benchmark.fields, [&](const char* field) { return object.contains(field); }) &&
           (!benchmark.matches || benchmark.matches(object));
}

nlohmann::json first_record(std::string_view text) {
    std::string_view first;
    for_each_record(text, [&](std::string_view record, int, int) {
        first = record;
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

void for_each_record(std::string_view text,
                     const std::function<bool(std::string_view record, int number, int line)>& use) {
    const size_t begin = text.find_first_not_of(" \t\r\n");
    if (begin != std::string_view::npos && text[begin] == '[') return for_each_element(text, use);
    for_each_line_with_text(text, [&](std::string_view line, int number) { return use(line, number, number); });
}

void refuse_other_benchmark(std::string_view text, const std::string& file, std::string_view task) {
    const auto record = first_record(text);
    if (!record.is_object()) return;
    const auto own = std::ranges::find(benchmarks(), task, &Benchmark::task);
    const bool is_own = std::ranges::any_of(benchmarks(), [&](const Benchmark& benchmark) {
        return benchmark.task == task && has_fields(record, benchmark);
    });
    if (own == benchmarks().end() || is_own) return;
    for (const Benchmark& other : benchmarks())
        if (has_fields(record, other))
            throw UsageError(
                fmt::format("{}: this looks like {}, not like {}: {}", file, other.name, own->name, other.remedy));
}

}  // namespace kvscope::engine
