#include "app/gui/session/parse_selection.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <regex>
#include <stdexcept>

#include "policies/interface/registry.h"
#include "trace/schema.h"

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
    static const std::regex part(R"(\s*(token|layer|head|step|t|l|h|s)\s*(\d{1,9}(?:-\d{1,9})?)(?=[\s,]|$),?)",
                                 std::regex::icase);
    std::string place;
    auto at = typed.begin();
    for (std::smatch found; at != typed.end(); at = found[0].second) {
        if (!std::regex_search(at, typed.end(), found, part, std::regex_constants::match_continuous)) break;
        const char letter = static_cast<char>(found[1].str()[0] | 0x20);
        const char* key = letter == 't' ? "token" : letter == 'l' ? "layer" : letter == 'h' ? "head" : "step";
        place += fmt::format("{}{}={}", place.empty() ? "" : ",", key, found[2].str());
    }
    const bool is_all = std::all_of(at, typed.end(), [](char c) { return c == ' '; });
    return place.empty() || !is_all ? std::nullopt : std::optional(place);
}

}  // namespace kvscope::gui
