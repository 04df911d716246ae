#include "app/gui/session/parse_selection.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <stdexcept>
#include <string_view>

#include "common/lower_case.h"
#include "policies/registry/registry.h"
#include "trace/records/schema.h"

namespace kvscope::gui {
namespace {

constexpr const char* form = "--select takes token=N or token=N-M, layer=N, head=N, step=N and, at the end, run=LABEL";

int64_t number(const std::string& key, std::string_view text, int64_t n, const char* there_are) {
    int64_t value = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size())
        throw std::invalid_argument(fmt::format("{}; found {}={}", form, key, text));
    if (value < 0 || value >= n)
        throw std::invalid_argument(
            fmt::format("{}={} is out of range: {} {}, counted from 0", key, text, there_are, n));
    return value;
}

RunKey run_of(const Session& session, const std::string& label) {
    std::vector<std::string> labels;
    for (const RunKey& key : session.all_runs()) {
        const RunLook look = session.look(key);
        const std::string name = look.label;
        if (policies::same_run_label(name, label)) return key;
        const std::string before = look.trace.empty() ? "" : look.trace + ": ";
        if (!look.recorded.empty() && policies::same_run_label(before + look.recorded, label)) return key;
        labels.push_back(name);
    }
    throw std::invalid_argument(
        fmt::format("run={}: there is no such run; the runs are: {}", label, fmt::join(labels, ", ")));
}

int64_t n_steps(const trace::Reader& reader, int prompt) {
    size_t most = 0;
    for (int run = 0; run < reader.n_runs(prompt); ++run) {
        const trace::Place place{prompt, run};
        if (reader.has(place, trace::schema::run::step_kl))
            most = std::max(most, reader.shape(place, trace::schema::run::step_kl).at(0));
    }
    return static_cast<int64_t>(most);
}

}  // namespace

Cursor parse_selection(const Session& session, const std::string& text) {
    Cursor cursor = session.cursor();
    std::string rest = text;
    const size_t run_at = rest.starts_with("run=") ? 0 : rest.find(",run=");
    if (run_at != std::string::npos) {
        const RunKey run = run_of(session, rest.substr(rest.find("run=", run_at) + 4));
        rest.resize(run_at);
        if (run.document != cursor.run.document || run.prompt != cursor.run.prompt) cursor = {};
        cursor.run = run;
    }
    const Document* document = session.focus();
    if (run_at != std::string::npos) document = session.document(cursor.run);
    if (!document || document->prompt >= document->reader()->n_prompts())
        throw std::invalid_argument("--select needs a trace with a prompt: name one, as in kvscope view demo.h5 …");
    const trace::Reader& reader = *document->reader();
    if (!cursor.run.valid()) cursor.run = {document->id(), document->prompt, {}};
    while (!rest.empty()) {
        const size_t comma = rest.find(',');
        const std::string part = rest.substr(0, comma);
        rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
        const size_t equals = part.find('=');
        const std::string key = part.substr(0, equals);
        if (equals == std::string::npos) throw std::invalid_argument(fmt::format("{}; found {}", form, part));
        const std::string value = part.substr(equals + 1);
        if (key == "token") {
            const size_t dash = value.find('-');
            const int64_t n = reader.prompt(document->prompt).n_tokens;
            cursor.first_token = number(key, value.substr(0, dash), n, "tokens in the prompt:");
            cursor.last_token = dash == std::string::npos
                                    ? cursor.first_token
                                    : number(key, value.substr(dash + 1), n, "tokens in the prompt:");
            if (cursor.last_token < cursor.first_token)
                throw std::invalid_argument(
                    fmt::format("token={}: the first token must not come after the last", value));
        } else if (key == "layer") {
            const int64_t n = reader.has_model() ? reader.model().n_layers : 0;
            cursor.layer = static_cast<int>(number(key, value, n, "layers of the model:"));
        } else if (key == "head") {
            const int64_t n = reader.has_model() ? reader.model().n_kv_heads : 0;
            cursor.kv_head = static_cast<int>(number(key, value, n, "KV heads of a layer:"));
            cursor.query_head = -1;
        } else if (key == "step") {
            cursor.step = static_cast<int>(number(key, value, n_steps(reader, document->prompt), "decode steps:"));
        } else {
            throw std::invalid_argument(fmt::format("{}; found {}", form, part));
        }
    }
    return cursor;
}

std::optional<std::string> convert_typed_place(const std::string& typed) {
    constexpr std::array<std::string_view, 4> keys = {"token", "layer", "head", "step"};
    const std::string text = lower_case(typed);
    std::string place;
    const char* at = text.c_str();
    for (;;) {
        char word[6] = {};
        int begin = 0, end = 0;  // of the number or range
        std::sscanf(at, " %5[a-z] %n%*9[0-9]%n-%*9[0-9]%n", word, &begin, &end, &end);
        const auto* const key =
            std::ranges::find_if(keys, [&](std::string_view k) { return k == word || k.substr(0, 1) == word; });
        const bool is_ended = at[end] == '\0' || at[end] == ',' || std::isspace(static_cast<unsigned char>(at[end]));
        if (end == 0 || key == keys.end() || !is_ended) break;
        place += fmt::format("{}{}={}", place.empty() ? "" : ",", *key, std::string_view(at + begin, at + end));
        at += at[end] == ',' ? end + 1 : end;
    }
    const bool is_all = std::string_view(at).find_first_not_of(' ') == std::string_view::npos;
    return place.empty() || !is_all ? std::nullopt : std::optional(place);
}

}  // namespace kvscope::gui
